# Places that cannot be written: one line, exit code 2, nothing half written. And speech that is interrupted.
M=$MODELS/tiny06-custom_voice
export M
long="$(printf 'and then the lamp burned on %.0s' {1..40})"
export long
run 'utter say -m $M -v ryan -o no-such-folder/x.wav hello'
run 'utter say -m $M -v ryan -o . hello'
run 'utter say -m $M -v ryan -o /dev/full hello --format wav'
run 'utter say -m $M -v ryan -o - hello >/dev/full'
run 'utter say -m $M -v ryan -o x.wav --codes /dev/full hello; echo $?; rm x.wav'
run 'utter say -m $M -v ryan -o x.wav --codes no-such-folder/x.json hello'
run 'utter voices -m $M >/dev/full'
run 'utter say -m $M -v ryan -o - hello >&-'
run 'utter say --help >/dev/full'
run 'utter say -m $M -v ryan -o - --no-guard "$long" | head -c 1000 | wc -c; echo ${PIPESTATUS[0]}'
run 'utter codec decode -m $M -o /dev/full --format raw - <<<"{\"codes\":[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]]}"'
run 'mkfifo pipe; cat pipe >from_pipe & utter say -m $M -v ryan --max-frames 3 -o pipe --format raw hello; wait; stat -c %s from_pipe; rm pipe from_pipe'
run 'mkdir real; printf old >real/x.wav; ln -s real/x.wav link.wav; utter say -m $M -v ryan --max-frames 3 -o link.wav hello; readlink link.wav; head -c 4 real/x.wav; echo; rm -r real link.wav'
run 'printf old >x.wav; utter say -m $MODELS/nan-sound -v ryan -o x.wav hello; cat x.wav; echo; rm x.wav'
run 'timeout --preserve-status -s INT 0.7 utter say -m $MODELS/loop --no-guard -v ryan --greedy --max-frames 20000 -o x.wav --codes x.json "$long"'
run 'size=$(stat -c %s x.wav); data=$(od -A n -t u4 -j 40 -N 4 x.wav); echo $((size - data)) $((data > 0))'
run 'head -n 1 x.json | sed "s/[0-9]\{2,\}/N/g"; rm x.wav x.json'
run '(printf "Hello there, "; sleep 2) | timeout --preserve-status -s TERM 0.7 utter say -m $MODELS/loop --no-guard --greedy -v ryan --layout stream -o x.wav -; echo $?; rm x.wav'
run '(sleep 2) | timeout --preserve-status -s INT 0.7 utter say -m $M -v ryan -o x.wav -'
run 'ls -A'
