# Models by name, what is chosen ahead, what newcomers type.
M=$MODELS/tiny06-custom_voice
snapshot=models--me--mine/snapshots/c0ffee
mkdir -p $HF_HUB_CACHE/$snapshot $HF_HUB_CACHE/models--me--mine/refs $HF_HUB_CACHE/models--who--else/snapshots/1
cp -r $M/. $HF_HUB_CACHE/$snapshot
printf c0ffee >$HF_HUB_CACHE/models--me--mine/refs/main
echo '{"model_type":"bert"}' >$HF_HUB_CACHE/models--who--else/snapshots/1/config.json
export M snapshot
unset UTTER_DEVICE # what is chosen, and by whom, is told here
run 'utter models'
run 'utter models --json | grep -o "\"chosen\": *true\|me/mine"'
run 'utter voices -m me/mine | head -1'
run 'utter voices -m $HF_HUB_CACHE/models--me--mine | head -1'
run 'utter voices -m 0.6b'
run 'utter voices -m 0.6b-bse; utter voices -m Qwen3-TTS-12Hz-0.6B-Base'
run 'utter use'
run 'utter use me/mine -v ryan --device cpu; cat $XDG_CONFIG_HOME/utter/config'
run 'utter use'
run 'utter models | grep "^\*"'
run 'utter info --threads 1 | head -2'
run 'utter info --json --threads 1 | grep -o "\"chosen_by\": *\"[^\"]*"'
run 'utter say --max-frames 2 -o a.wav Hi.'
export UTTER_DEVICE=cpu
run 'utter say -m $MODELS/tiny06-base -v ryan --max-frames 2 -o a.wav Hi.'
run 'UTTER_MODEL=$MODELS/eos-first utter info --threads 1 | head -1'
run 'UTTER_VOICE=nobody utter say --max-frames 2 -o a.wav Hi.'
run 'UTTER_VOICE=nobody utter say -v ryan --max-frames 2 -o a.wav Hi.'
run 'UTTER_DEVICE=tpu utter say --max-frames 2 -o a.wav Hi.'
run 'printf "\n# of this machine\n" >>$XDG_CONFIG_HOME/utter/config; utter use | head -1'
run 'echo "modle = x" >>$XDG_CONFIG_HOME/utter/config; utter voices'
run 'head -c 5000 /dev/zero | tr "\\0" x >$XDG_CONFIG_HOME/utter/config; utter voices'
run 'rm $XDG_CONFIG_HOME/utter/config; mkdir $XDG_CONFIG_HOME/utter/config; utter voices; rmdir $XDG_CONFIG_HOME/utter/config'
# A root who may not read everything is like any other user.
bounded() { if [ "$(id -u)" -eq 0 ]; then setpriv --bounding-set=-dac_override,-dac_read_search "$@"; else "$@"; fi; }
export -f bounded
run 'chmod 0 $XDG_CONFIG_HOME/utter; bounded utter voices | head -1; bounded utter say -q --max-frames 2 -o a.wav Hi.; bounded utter models 2>&1 >/dev/null; bounded utter use me/mine; chmod 755 $XDG_CONFIG_HOME/utter'
run 'utter use nothing-here; utter use 1.7b'
run 'utter use $M && cat $XDG_CONFIG_HOME/utter/config'
run 'utter use builtin && utter voices | head -2; rm -r $XDG_CONFIG_HOME/utter'
run 'utter pull nothing; utter pull 0.6; utter pull https://huggingface.co/Qwen/Qwen3-TTS-12Hz-0.6B-Base'
run 'utter pull'
# No result in place of what is read, or of a file of another kind.
$PLAIN say -q -m builtin -o hello.wav "Hello there, how are you?"
run 'utter clone -m $MODELS/tiny06-base hello.wav -o hello.wav'
run 'cp hello.wav other.wav; utter clone -m $MODELS/tiny06-base hello.wav -o other.wav'
run 'utter clone -q -m $MODELS/tiny06-base -l en hello.wav -o me.voice && utter voices me.voice | grep language'
run 'utter voices mix me.voice -o other.wav'
run 'utter quantize -m $M --weights q8 -o other.wav'
run 'utter say -m $M --max-frames 2 -o me.voice --format wav Hi.'
run 'echo some text >notes.txt; utter say -m $M --max-frames 2 -o notes.txt --format flac Hi.'
run 'utter say -m $M --max-frames 2 -o a.wav --codes hello.wav Hi.'
run 'utter codec encode -m $M hello.wav -o me.voice'
run 'utter say -m $M --max-frames 2 -o hello.wav Hi. && stat -c %s hello.wav'
run 'utter voices mix me.voice -q -o me.voice'
# What is no voice and no model says what it is.
run 'utter say -m $MODELS/tiny06-base -v ./other.wav Hi.'
run 'printf "GGUF\003\000\000\000\000\000\000\000" >model.gguf; utter say -m model.gguf Hi.'
pointer() { printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 12345678\n' 0; }
export -f pointer
run 'cp -r $M pointed; rm pointed/model.safetensors; pointer >pointed/model.safetensors; utter say -m pointed Hi.'
run 'cp -r $M partly; rm -r partly/speech_tokenizer; utter say -m partly Hi.'
run 'utter say -m $MODELS/tiny06-voice_design --max-frames 2 -o a.wav Hi.'
# Shells.
run 'bash -n <(utter completion bash) && utter completion bash | tail -1'
complete_words() {
    eval "$(utter completion bash)"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _utter
    echo "${COMPREPLY[@]}"
}
export -f complete_words
run 'complete_words utter cod; complete_words utter codec ""'
run 'complete_words utter say --in; complete_words utter say --layout ""; complete_words utter codec decode --ru'
run 'complete_words utter pull 1'
run 'utter completion fish | grep "subcommand_from say. -l layout"; utter completion zsh | sed -n 1p'
run 'utter completion csh'
# A text that is sent needs no name; what phones record says how it becomes a recording.
run 'echo Hi. | utter say -m $M -v ryan --max-frames 2 -o p.wav && stat -c %s p.wav'
run 'utter say -m $M -v ryan -o p.wav'
mkdir none && ln -s "$(command -v utter)" none/utter
run 'printf "\000\000\000\040ftypM4A \000\000\000\000isom" >me.m4a; PATH=none utter clone -m $MODELS/tiny06-base me.m4a -o m4a.voice'
# Where ffmpeg is, it is asked. Here it is one that gives a recording of 130 s, which can be heard from 40 s on: loud, soft,
# loud.
mkdir some && python3 - <<'PYTHON'
import wave
with wave.open("long.wav", "wb") as w:
    w.setparams((1, 2, 8000, 0, "NONE", ""))
    w.writeframes(bytes(2 * 8000 * 40) + (b"\x00\x20\x00\xe0" * 1000 + b"\x00\x10\x00\xf0" * 1000) * 32 + bytes(2 * 8000 * 74))
PYTHON
printf '#!/bin/sh\nfor last; do :; done\ncp long.wav "$last"\n' >some/ffmpeg
chmod +x some/ffmpeg
export B=$MODELS/tiny06-base
run 'PATH=some:$PATH utter clone -m $B me.m4a -o m4a.voice'
run 'PATH=some:$PATH utter clone -m $B me.m4a --from 40s --to 0:44.5 -o m4a.voice && utter voices m4a.voice | grep made'
run 'PATH=some:$PATH TMPDIR=$PWD/some utter clone -q -m $B me.m4a --from 40 --to 43 -o m4a.voice && ls some'
run 'printf "#!/bin/sh\nexit 1\n" >some/ffmpeg; PATH=some:$PATH utter clone -m $B me.m4a -o m4a.voice'
run 'utter clone -m $B long.wav --from 200 -o m4a.voice'
run 'utter clone -m $B long.wav --from 5 --to 3 -o m4a.voice'
run 'utter clone -m $B long.wav --to soon -o m4a.voice'
