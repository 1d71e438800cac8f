# When each word is heard: utter say --times. Figures depend on the kernels of the machine, so only what does not is shown.
TEXT='"Before you leave," he said, "please feed the cat; she has been waiting since noon." Yes, <b> & {x} too.'
export TEXT
run 'utter say -q -o t.wav --times t.json "$TEXT"; grep -c "\"final\":true" t.json; tail -c 22 t.json'
run 'sed -n "s/.*\"text\":\"\([^\"]*\)\".*/\1/p" t.json | tr "\n" " "; echo'
run 'sed -n "s/.*\"start_s\":\([0-9.]*\),\"end_s\":\([0-9.]*\).*/\1 \2/p" t.json | awk "\$1 < last || \$2 < \$1 {bad++} {last = \$1} END {print NR, bad + 0}"'
run 'utter say -q -o t.wav --times t.srt "$TEXT"; sed "s/[0-9]*:[0-9:,]*/T/g" t.srt; awk "length > 42 && !/-->/" t.srt'
run 'utter say -q -o t.wav --times t.vtt "$TEXT"; sed "s/[0-9]*:[0-9:.]*/T/g; s/<T>//g" t.vtt'
run 'utter say -q -o t.wav --times t.ass "$TEXT"; sed -n "s/[0-9]*:[0-9:.]*/T/g; s/{.k[0-9]*}//g; /^Dialogue/p" t.ass'
run 'utter say -q -o t.wav --times - --speed 2 "One two." >t.json; utter say -q -o t.wav --times u.json "One two."; cat t.json u.json | sed -n "s/.*\"end_s\":\([0-9.]*\).*/\1/p" | awk "{e[NR] = \$1} END {print (e[4] / e[2] > 1.99 && e[4] / e[2] < 2.01)}"'
run 'utter say -q -o t.wav -m $MODELS/tiny17-custom_voice -v ryan --max-frames 9 --times t.json Hello there.; tail -c 21 t.json'
run 'utter say -q -o t.wav --times t.txt Hello.'
run 'utter say -q -o t.wav --times t.wav Hello.'
run 'ls -A'
