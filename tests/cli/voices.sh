# Voice files: made from recordings, descriptions and each other; listed, looked into, spoken with; and what is refused.
B=$MODELS/tiny06-base
export B
mkdir -p "$XDG_DATA_HOME/utter/voices" mine
python3 - <<'PYTHON'
import math, struct, wave
with wave.open("ref.wav", "wb") as w:
    w.setparams((1, 2, 24000, 0, "NONE", ""))
    w.writeframes(b"".join(struct.pack("<h", round(9830 * math.sin(i * 0.05) * math.sin(i * 0.0007))) for i in range(28800)))
PYTHON
utter say -q -m $MODELS/tiny06-custom_voice --max-frames 6 -o short.wav "Hello there, friend."

# Making.
run 'utter clone -m $B ref.wav --text "Hello there, friend." -o me.voice'
run 'utter clone -m $B short.wav --name Ann -l english -o mine/ann.voice'
run 'utter clone -q -m $B ref.wav -o "$XDG_DATA_HOME/utter/voices/bob.voice"'
run 'utter clone -q -m $B ref.wav --json | cut -c1-24'
run 'utter clone -q -m $B ref.wav --text "Hello there, friend." --json | cut -c1-34'
run 'utter codec encode -q -m $B ref.wav -o codes.json; utter clone -q -m $B ref.wav --text x --json | python3 -c "
import json, sys
a, b = json.load(sys.stdin), json.load(open(\"codes.json\"))
print(a[\"frames\"], a[\"codes\"] == b[\"codes\"], sorted(b), b[\"finish\"], len(a[\"x_vector\"]))"'
run 'utter codec encode -m $B ref.wav | utter codec decode -m $B - -o again.wav && wc -c <again.wav'
run 'utter voices mix me.voice:0.7 ann:0.3 --voices mine -o both.voice'
run 'utter voices mix bob -o alone.voice'
run 'utter design -m $MODELS/tiny06-voice_design --for $B --instruct "A calm old man." -o old.voice'
run 'utter design -q -m $MODELS/tiny06-voice_design --for $B --instruct "Hell." -l german --seed 2 --name Heidi -o h.voice'

# Looking.
run 'utter voices me.voice'
run 'utter voices me.voice --json'
run 'utter voices bob -m $B'
run 'utter voices bob -m $MODELS/tiny17-base'
run 'utter voices both.voice -m $MODELS/tiny06-custom_voice'
run 'utter voices old.voice'
run 'utter voices h.voice'
# What a file says does not steer the terminal.
run 'utter clone -q -m $B short.wav --name $'"'"'a\e[31mb\xc2\x9bc'"'"' --text $'"'"'one\ttwo'"'"' -o red.voice && utter voices red.voice && utter voices red.voice -m $MODELS/tiny17-base | grep this; utter voices mix red.voice:2e6 -o x.voice; rm red.voice'
run 'mkdir odd; cp me.voice odd/$'"'"'\xff'"'"'.voice; utter voices -m $B --voices odd --json | grep -o "{.path.:.odd[^}]*"; utter voices odd/*.voice --json | cut -c1-22; rm -r odd'
echo "no voice" >mine/zoe.voice
run 'utter voices -m $B --voices mine'
run 'utter voices -m $B --voices mine --json'

# Speaking.
speak="utter say -q -m \$B --max-frames 4 --codes"
run "$speak a.json -o a.wav -v bob 'Hello there.'"
run "$speak b.json -o b.wav -v \$XDG_DATA_HOME/utter/voices/bob.voice 'Hello there.'; cmp a.wav b.wav && cmp a.json b.json"
run "$speak b.json -o b.wav -v me.voice 'Hello there.'; cmp -s a.json b.json"
run "$speak b.json -o b.wav -v ann --voices mine 'Hello there.'"
run 'utter bench -m $B -v me.voice --words 2 --runs 1 --max-frames 2 --threads 1 --snapshots 0 | wc -l'
run 'utter say -m $B -v nobody -o x.wav hello'
run 'utter say -m $B -v anne --voices mine -o x.wav hello'
run 'utter say -m $B -v zoe --voices mine -o x.wav hello'
run 'utter say -m $MODELS/tiny17-base -v me.voice -o x.wav hello'
run 'utter say -m $MODELS/tiny06-custom_voice -v me.voice -o x.wav hello'

# What cannot be typed.
run 'utter clone -m $B ref.wav'
run 'utter clone -m $B ref.wav -o -'
run 'utter clone -m $B -o x.voice'
run 'utter design -m $MODELS/tiny06-voice_design --for $B -o x.voice'
run 'utter design -m $MODELS/tiny06-voice_design --instruct "A man." -o x.voice'
run 'utter design -m $MODELS/tiny06-voice_design --for $B --instruct " " -o x.voice'
run 'utter design -m $MODELS/tiny06-voice_design --for $B --instruct "A man." -l latin -o x.voice'
run 'utter voices mix bob -o no-such-folder/x.voice'
run 'utter design -m $MODELS/tiny06-voice_design --for $B --instruct "A man." -o no-such-folder/x.voice'
run 'utter voices mix :0.5 -o x.voice'
run 'utter voices mix me.voice:0 -o x.voice'
run 'utter voices mix me.voice:-1 bob -o x.voice'
run 'utter voices mix me.voice nobody -o x.voice'
run 'utter voices nobody'
run 'utter voices -m $B --voices no-such-folder'

# Models that cannot.
run 'utter clone -m $MODELS/tiny06-custom_voice ref.wav -o x.voice'
run 'utter clone -m $MODELS/tiny06-voice_design ref.wav --text hello -o x.voice'
run 'utter design -m $B --for $B --instruct "A man." -o x.voice'
run 'utter design -m $MODELS/tiny06-voice_design --for $MODELS/tiny06-custom_voice --instruct "A man." -o x.voice'
make_model tiny06 voice_design endless --craft endless --vocabulary $ROOT/tests/fixtures/vocabulary >/dev/null
run 'utter design -m endless --for $B --instruct "A man." --text "Hi." -o x.voice'
rm -r endless
run 'ls -A'
