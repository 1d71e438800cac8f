# Places that cannot be written: one line, exit code 2, nothing half written. And speech that is interrupted.
M=$MODELS/tiny06-custom_voice
export M
long="$(printf 'and then the lamp burned on %.0s' {1..40})"
export long
run 'utter say -m $M -v ryan -o no-such-folder/x.wav hello'
run 'utter say -m $M -v ryan -o /dev/null/x.wav hello'
run 'utter say -m $M -v ryan -o . hello'
run 'utter say -m $M -v ryan -o /dev/full hello --format wav'
run 'utter say -m $M -v ryan -o - hello >/dev/full'
run 'utter say -m $M -v ryan -o x.wav --codes /dev/full hello; echo $?; rm x.wav'
run 'utter say -m $M -v ryan -o x.wav --codes no-such-folder/x.json hello'
run 'printf old >real.json; chmod 600 real.json; ln -s real.json link.json; utter say -m $M -v ryan --max-frames 3 -o x.wav --codes link.json hello; readlink link.json; stat -c %a real.json; head -c 15 real.json; echo; rm x.wav real.json link.json'
run 'utter say -m $M -v ryan -o x.wav --codes x.wav hello'
run 'utter say -m $M -v ryan -o x.wav --codes ./x.wav hello'
run 'touch x.wav; ln -s x.wav y.wav; utter say -m $M -v ryan -o y.wav --codes ../$(basename $PWD)/x.wav hello; rm x.wav y.wav'
run 'utter say -m $M -v ryan -o x.wav --codes x.json --trace x.json hello'
run 'utter say -m $M -v ryan --max-frames 3 -o /dev/null --format raw --codes /dev/null hello'
run 'utter say -m $M -v ryan -o x.wav --trace - --json hello'
run 'utter say -m $M -v ryan --max-frames 3 -o x.wav --trace - hello | head -c 10; echo; rm x.wav'
run 'utter say -m $M -v ryan -o x.wav --trace no-such-folder/x.json hello'
run 'printf old >x.json; utter say -m $MODELS/nan-sound -v ryan -o x.wav --trace x.json hello; cat x.json; echo; rm x.json'
run 'printf "hello" >t.txt; utter say -m $M -v ryan -f t.txt --format raw -o ./t.txt; cat t.txt; echo; rm t.txt'
run 'printf "{\"codes\":[]}" >c.json; ln -s c.json d.json; utter codec decode -m $M d.json --format raw -o c.json; cat c.json; echo; rm c.json d.json'
run 'cp -r $M m; utter quantize -m m --weights q8 -o m/model.safetensors; cmp m/model.safetensors $M/model.safetensors; utter say -m m -v ryan --max-frames 3 hello -o x.wav --trace m/config.json; cmp m/config.json $M/config.json; rm -r m'
run 'utter quantize -m $M --weights q8 -o no-such-folder/x'
run 'utter quantize -m no-such-folder --weights q8 -o x'
run 'utter voices -m $M >/dev/full'
run 'utter say -m $M -v ryan -o - hello >&-'
run 'utter say --help >/dev/full'
run 'utter say -m $M -v ryan -o - --no-guard "$long" | head -c 1000 | wc -c; echo ${PIPESTATUS[0]}'
run 'utter codec decode -m $M -o /dev/full --format raw - <<<"{\"codes\":[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]]}"'
run 'mkfifo pipe; cat pipe >from_pipe & utter say -m $M -v ryan --max-frames 3 -o pipe --format raw hello; wait; stat -c %s from_pipe; rm pipe from_pipe'
run 'mkdir real; printf fLaCold >real/x.wav; ln -s real/x.wav link.wav; utter say -m $M -v ryan --max-frames 3 -o link.wav hello; readlink link.wav; head -c 4 real/x.wav; echo; rm -r real link.wav'
run 'printf fLaCold >x.wav; utter say -m $MODELS/nan-sound -v ryan -o x.wav hello; cat x.wav; echo; rm x.wav'
# Sends the signal when the command has written some sound, into a file that may have no name yet.
interrupt() { # signal, command ...
    local signal=$1 i
    shift
    set -m # else a shell has what runs beside it ignore SIGINT
    "$@" <&0 &
    set +m
    for ((i = 0; i < 6000; i++)); do
        [ -e "/proc/$!" ] || break # it has ended before anybody looked
        [ -z "$(find "/proc/$!/fd" \( -lname "$PWD/* (deleted)" -o -lname "$PWD/.utter-*" \) \
            -exec find -L {} -size +8000c \; 2>/dev/null)" ] || break
        sleep 0.05
    done
    kill -s "$signal" $! 2>/dev/null # one that has ended already shows what it shows
    wait $!
}
export -f interrupt
# Sends SIGINT when the command has taken an empty line and waits for more.
interrupt_reader() { # command ...
    mkfifo lines
    set -m
    "$@" <lines &
    set +m
    exec 3>lines
    rm lines
    echo >&3
    until python3 -c 'import fcntl; exit(any(fcntl.ioctl(3, 0x541b, bytes(4))))' || ! kill -0 $!; do # FIONREAD
        sleep 0.05
    done
    kill -s INT $!
    wait $!
}
export -f interrupt_reader
run 'interrupt INT utter say -m $MODELS/loop --no-guard -v ryan --greedy -o x.wav --codes x.json "$long"'
run 'size=$(stat -c %s x.wav); data=$(od -A n -t u4 -j 40 -N 4 x.wav); echo $((size - data)) $((data > 0))'
run 'tail -n 1 x.json | sed "s/.*]]/]]/; s/:[0-9]\+/:N/g"; rm x.wav x.json'
run '(printf "Hello there, "; sleep 3) | interrupt TERM utter say -m $MODELS/loop --greedy -v ryan --layout stream -o x.wav -'
run 'size=$(stat -c %s x.wav); data=$(od -A n -t u4 -j 40 -N 4 x.wav); echo $((size - data)) $((data > 0)); rm x.wav'
run 'interrupt HUP utter say -m $MODELS/loop --no-guard -v ryan --greedy -o x.wav "$long"; s=$?; head -c 4 x.wav; echo; rm x.wav; (exit $s)'
run 'interrupt INT utter say -o x.wav "$(printf "The train left the old station at noon, and nobody was told. %.0s" {1..90})"'
run 'size=$(stat -c %s x.wav); data=$(od -A n -t u4 -j 40 -N 4 x.wav); echo $((size - data)) $((data > 0)); rm x.wav'
run 'interrupt INT utter say -o x.opus --times x.json "$(printf "The train left the old station at noon, and nobody was told. %.0s" {1..90})"'
run 'python3 -c "import json; d = open(\"x.opus\", \"rb\").read(); end = int.from_bytes(d[d.rindex(b\"OggS\") + 6:][:8], \"little\") / 48000; print(end > 0, all(w[\"start_s\"] < end for w in json.load(open(\"x.json\"))[\"words\"]))"; rm x.opus x.json'
run '(trap "" HUP; interrupt HUP utter say -q -m $MODELS/loop --max-frames 90 --no-guard -v ryan --greedy -o x.wav "$long"); stat -c %s x.wav; rm x.wav'
run 'python3 -c "import json; print(json.dumps({\"codes\": 9000 * [16 * [1]]}))" >long.json; interrupt INT utter codec decode -m $M long.json -o x.wav; s=$?; rm long.json; (exit $s)'
run 'interrupt_reader utter say -m $M -v ryan -o x.wav -'
run 'ls -A'
