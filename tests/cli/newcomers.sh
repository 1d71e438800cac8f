# What newcomers stumbled over, a command each. The letters are their findings'; names.sh has the rest of them.
M=$MODELS/tiny06-custom_voice B=$MODELS/tiny06-base
export M B
# A: nothing is lost without an error.
$PLAIN say -q -o p2.wav "Hello there, how are you?" && cp p2.wav precious.wav
run 'utter clone -m $B p2.wav -o p2.wav; cmp p2.wav precious.wav'
run 'utter clone -m $B p2.wav -o precious.wav; cmp p2.wav precious.wav'
run 'cp -r $M m; utter quantize -m m --weights q8 -o m/model.safetensors; cmp m/model.safetensors $M/model.safetensors; rm -r m'
# C: the first model. tests/hub/test_pull.py downloads it, with the commands of the README.
run 'utter say -m Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice Hi.'
# D: the first cloned voice.
run 'utter say -v p2.wav Hi.'
run 'utter say -m $M -v p2.wav Hi.'
run 'utter say -m $B -v p2.wav Hi.'
run 'mkdir voices; utter clone -q -m $B p2.wav -o voices/me.voice; cp p2.wav me; utter say -q -m $B --voices voices -v me --max-frames 2 -o a.wav Hi. && stat -c %s a.wav'
run 'utter clone -m $M p2.wav -o a.voice'
run 'utter say -v me.mp3 Hi.'
python3 - <<'PYTHON'
import random, wave
random.seed(1)
with wave.open("hiss.wav", "wb") as w:
    w.setparams((1, 2, 24000, 0, "NONE", ""))
    w.writeframes(random.randbytes(2 * 24000 * 3))
PYTHON
run 'utter clone -q -m $B hiss.wav -o a.voice'
# F: the command line.
run 'utter say -q -m $M -v ryan --max-frames 9 --speed 1.5 --volume 0.5 --rate 16000 -o a.wav Hi. && head -c 28 a.wav | tail -c 4 | od -A n -t u4'
run 'utter say -q -m $M -v ryan -l en-US --max-frames 2 -o a.wav Hi.'
run 'utter say -m $M -v ryan -l englsh Hi.; utter say -m $M -v rian Hi.'
on_a_terminal() { script -qec "$*" /dev/null | tr '\r' '\n' | sed 's/\x1b\[K//g' | uniq -w 8; } # progress once
export -f on_a_terminal
run 'on_a_terminal utter quantize -m $M --weights q8 -o packed'
run 'utter info -m packed --threads 1 | grep -e ^model -e ^device; utter info --json -m packed | grep -o "\"packed\":[a-z]*"'
run 'utter info --threads 1 | sed -n 2p; utter info --json | grep -o "\"size\":[^,]*"'
run 'utter say -q -o a.wav "<speak>Hello <break/> there.</speak>"'
run 'utter say -o a.wav "<speak>Hello <break/> there.</speak>"'
run 'utter say -q --markup ssml -o a.wav "<speak>Hello <break/> there.</speak>"'
taken() { # COMMAND, with $port, where something listens already
    python3 - "$@" <<'PYTHON'
import os, socket, subprocess, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    os.environ["port"] = str(server.getsockname()[1])
    sys.exit(subprocess.run(sys.argv[1], shell=True, check=False).returncode)
PYTHON
}
export -f taken
run 'taken "utter serve --port \$port"'
run 'env -u MAKEFLAGS -u MAKELEVEL make -s -C $ROOT CC="${CC:-cc} -nostdinc" all'
# What the page of examples says is said.
run 'sed -n "s/^    //p" $ROOT/examples/listen/README.md >page; mkdir page.d; cd page.d; bash -eu ../page && ls'
