# Text of any length: what is cut or may lack words is told, and the ways to the same speech give the same bytes.
M=$MODELS/tiny06-custom_voice
export M
cat >story <<'end'
The train left the old station at noon, and nobody had told the people who were waiting. They looked at each other.
A man in a grey coat put down his bag and laughed.

It was a warm day in the middle of the summer, so they sat down on the grass, and somebody began to sing.
end
# The built-in voice.
run 'utter say -f story -o a.wav --stats 2>&1 | sed -n "1p;4p"'
run 'utter say "$(cat story)" -o b.wav; cmp a.wav b.wav'
run 'utter say --lanes 1 -f story -o b.wav; cmp a.wav b.wav'
run '(head -c 20 story; sleep 0.1; tail -c +21 story) | utter say -o b.wav; cmp a.wav b.wav'
run 'utter say -f story -o - >b.raw; tail -c +45 a.wav | cmp - b.raw'
run 'utter say -f story -o - | cmp - b.raw'
run 'PLAYED=p.raw utter say -f story; utter say -f story -o - --sample f32 | cmp - p.raw; rm p.raw'
run 'utter say -f story -o b.wav --json --codes c.json | sed "s/.*\(\"pieces\)/\1/"; python3 -c "import json; c = json.load(open(\"c.json\")); print(c[\"frames\"] == len(c[\"codes\"]) > 100, c[\"finish\"])"'
run 'utter say -f story -o b.wav --max-frames 100; echo $?; echo $(($(stat -c %s b.wav) > 380000))'
run 'utter say -f story -o b.wav --max-frames 10 -q; echo $?; stat -c %s b.wav; rm b.wav b.raw c.json'
# A voice that stops at once, and one that never does.
run 'utter say -m $MODELS/eos-first -v ryan -f story -o b.wav'
run 'utter say -m $MODELS/eos-first -v ryan -f story -o b.wav --retries 0 --seed 5 -q'
run 'utter say -m $MODELS/eos-first -v ryan --markup tags -q -o b.wav "[rate:1.2]They looked at each other for a long while."; rm b.wav'
run 'utter say -m $MODELS/loop -v ryan -o b.wav --retries 1 --stats "Hello there." 2>&1 | sed -n "4p;\$p"; rm b.wav'
# A file for each line.
run 'printf "One.\n\n  \nTwo, three.\r\nFour." | utter say --lines -o line.wav; ls line-*'
run 'utter say -o b.wav "Two, three."; cmp b.wav line-0004.wav; rm b.wav line-*'
run 'utter say --lines "$(printf "One.\nTwo.")"; rm utter-*'
run 'printf "One.\nbad \xff byte\nTwo.\n" | utter say -q --lines -o x/line.wav; echo $?; printf "One.\nbad \xff byte\nTwo.\n" | utter say -q --lines -o line.wav; echo $?; ls line-*; rm line-*'
run 'printf "One.\n" | utter say --lines --json | cut -c1-25; rm utter-*'
run 'echo hello | utter say --lines -o -'
run 'echo precious >line-0001.wav; echo hello | utter say --lines -o line.wav; cat line-0001.wav; rm line-0001.wav'
# Sends SIGINT when the first line is spoken and the command waits for more.
interrupt_after_line() { # command ...
    mkfifo lines
    set -m
    "$@" <lines &
    set +m
    exec 3>lines
    rm lines
    echo One. >&3
    until [ -e utter-0001.wav ] || ! kill -0 $!; do
        sleep 0.05
    done
    kill -s INT $!
    wait $!
}
export -f interrupt_after_line
run 'interrupt_after_line utter say --lines -q; echo $?; ls utter-*; rm utter-*'
run 'ls -A'
