# Recordings and voice files that are not what they should be: one line, exit code 1, nothing written, and soon.
B=$MODELS/tiny06-base
export B
python3 "$HERE/bad_sound.py"
for file in no-such empty text.wav header-only.wav rate-0.wav rate-7000.wav channels-0.wav channels-9.wav nan.wav infinite.wav \
    absurd.wav no-samples.wav; do
    run "utter clone -m \$B $file -o x.voice"
done
# A header that promises more than there is: what is there counts.
run 'utter clone -m $B long-promise.wav -o x.voice; rm x.voice'
# Too long, by its bytes or by what comes out of it.
run 'timeout 600 utter clone -m $B large.wav -o x.voice'
$PLAIN codec decode -q -m $MODELS/silent silence.json -o bomb.flac
run '[ $(wc -c <bomb.flac) -lt 200000 ]; timeout 600 utter clone -m $B bomb.flac -o x.voice'
run 'utter codec encode -m $B bomb.flac -o x.json'
# What works, but is said.
run 'utter clone -m $B silence.wav -o x.voice'
run 'utter clone -m $B clipped.wav -o x.voice; rm x.voice'
run 'utter clone -m $B one-sample.wav -o x.voice'
run 'utter codec encode -m $B one-sample.wav'
# A decoder's complaints are not ours.
$PLAIN say -q -m $MODELS/loud --max-frames 60 -o damaged.mp3 hello
python3 "$HERE/damage_mp3.py" damaged.mp3
run 'utter codec encode -q -m $B damaged.mp3 -o x.json; rm -f x.json damaged.mp3'
# Texts that are no UTF-8.
run 'utter clone -q -m $B good.wav --text $'"'"'gr\xfc\xdfe'"'"' -o x.voice'
run 'utter clone -q -m $B good.wav --name $'"'"'\xff'"'"' -o x.voice'
run 'utter clone -q -m $B good.wav --text "   " -o x.voice'
run 'cp good.wav $'"'"'g\xfct.wav'"'"' && utter clone -q -m $B $'"'"'g\xfct.wav'"'"' -o x.voice && utter voices x.voice; rm -f x.voice g*t.wav'
# Voice files.
utter clone -q -m $B good.wav --text "Hello there." -o good.voice
head -c 400 good.voice >cut.voice
python3 -c '
data = bytearray(open("good.voice", "rb").read())
data[len(data) // 2] ^= 4
open("flipped.voice", "wb").write(data)'
cp $B/model.safetensors model.voice
: >empty.voice
for file in cut flipped empty model; do
    run "utter say -m \$B -v $file.voice -o x.wav hello"
done
run 'utter voices good.wav'
run 'mkfifo pipe.voice; utter say -m $B -v ./pipe.voice -o x.wav hello; rm pipe.voice'
run 'utter voices mix good.voice flipped.voice -o x.voice'
# Places that cannot be written: what was there stays.
run 'utter clone -q -m $B good.wav -o no-such-folder/x.voice'
run 'mkdir taken.voice; utter clone -q -m $B good.wav -o taken.voice; rmdir taken.voice'
run 'cp good.voice kept.voice; (ulimit -f 0; utter clone -q -m $B good.wav -o kept.voice); cmp good.voice kept.voice'
run 'utter codec encode -q -m $B good.wav -o no-such-folder/x.json'
run 'utter clone -q -m $B good.wav --json >/dev/full'
# Ctrl-C, whenever it comes, leaves nothing.
for after in 0.05 0.15 0.3; do
    timeout --preserve-status -s INT $after utter clone -q -m $B longest.wav --text "Long." -o x.voice 2>/dev/null
    case $? in 0) rm x.voice ;; 130) ;; *) echo "ended otherwise" ;; esac
done
run 'ls -A'
