# When each word is heard: utter say --times. Figures depend on the kernels of the machine, so only what does not is shown.
TEXT='"Before you leave," he said, "please feed the cat; she has been waiting since noon." Yes, <b> & {x} too.'
export TEXT
run 'utter say -q -o t.wav --times t.json "$TEXT"; grep -c "\"final\":true" t.json; tail -c 22 t.json'
run 'sed -n "s/.*\"text\":\"\([^\"]*\)\".*/\1/p" t.json | tr "\n" " "; echo'
run 'sed -n "s/.*\"start_s\":\([0-9.]*\),\"end_s\":\([0-9.]*\).*/\1 \2/p" t.json | awk "\$1 < last || \$2 < \$1 {bad++} {last = \$1} END {print NR, bad + 0}"'
run 'utter say -q -o t.wav --times t.srt "$TEXT"; sed "s/[0-9]*:[0-9:,]*/T/g" t.srt; awk "length > 42 && !/-->/" t.srt'
run 'utter say -q -o t.wav --times t.vtt "$TEXT"; sed "s/[0-9]*:[0-9:.]*/T/g; s/<T>//g" t.vtt'
run 'utter say -q -o t.wav --times t.ass "$TEXT"; sed -n "s/[0-9]*:[0-9:.]*/T/g; s/{.k[0-9]*}//g; /^Dialogue/p" t.ass'
# All formats have the same times; a cue ends at a pause.
run 'utter say -q -o t.wav --times t.srt "$TEXT"; python3 "$HERE/clocks.py" t.srt t.ass'
run 'utter say -q -o t.wav --markup tags --times t.srt "Please feed the cat[pause:2s], and the dog."; grep -c -e "-->" t.srt'
# Of marked-up text, the words as they are written: no tags, what references stand for, what was spelled out as it was.
TAGS='# A word
[voice:miles]"Hello[pause:100ms] there," un[x:y]do \[pause:1s] for 3 cats.'
SSML='<speak><s>The <say-as interpret-as="cardinal">42</say-as> of AT&amp;T</s><s>"W<b>or</b>d" d&#233;j&#224;, <sub alias="a web">WWW</sub><break time="50ms"/>.</s></speak>'
export TAGS SSML
run 'utter say -q -o t.wav --markup tags --spell-out --times t.srt "$TAGS"; sed "s/[0-9]*:[0-9:,]*/T/g" t.srt'
run 'utter say -q -o t.wav --markup ssml --times t.srt "$SSML"; sed "s/[0-9]*:[0-9:,]*/T/g" t.srt'
run 'utter say -q -o t.wav --markup ssml --times t.vtt "$SSML"; sed "s/[0-9]*:[0-9:.]*/T/g; s/<T>//g" t.vtt'
run 'utter say -q -o t.wav --markup ssml --times t.ass "$SSML"; sed -n "s/[0-9]*:[0-9:.]*/T/g; s/{.k[0-9]*}//g; /^Dialogue/p" t.ass'
run 'utter say -q -o t.wav --markup ssml --times - "$SSML" | python3 "$HERE/places.py" "$SSML"'
run 'utter say -q -o t.wav --markup tags --times - "$TAGS" | python3 "$HERE/places.py" "$TAGS"'
run 'printf "ANNA = clara\n" >c.txt; printf "They left.\nANNA: Hello.\nANNA: Hi!\n" | utter say -q -o t.wav --cast c.txt --times t.srt -; sed "s/[0-9]*:[0-9:,]*/T/g" t.srt; rm c.txt'
run 'utter say -q -o t.wav --times - --speed 2 "One two." >t.json; utter say -q -o t.wav --times u.json "One two."; cat t.json u.json | sed -n "s/.*\"end_s\":\([0-9.]*\).*/\1/p" | awk "{e[NR] = \$1} END {print (e[4] / e[2] > 1.99 && e[4] / e[2] < 2.01)}"'
run 'utter say -q -o t.wav -m $MODELS/tiny17-custom_voice -v ryan --max-frames 9 --times t.json Hello there.; tail -c 21 t.json'
run 'utter align-heads | grep -c follows; ls $XDG_CACHE_HOME/utter | sed "s/[0-9a-f]\{16\}/HASH/"'
run 'T="alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi"; utter align-heads -q -m $MODELS/follows --layout stream --max-frames 57 -o h.json "$T" "$T" "$T" | grep -c follows; cat h.json'
run 'utter align-heads -m $MODELS/tiny06-custom_voice --max-frames 60 --json | head -c 20'
run 'utter align-heads -m $MODELS/tiny06-custom_voice --max-frames 60 -o none.json >list; echo $?; cat none.json'
run 'utter align-heads -o t.wav'
run 'utter say -q -o t.wav --times t.txt Hello.'
run 'utter say -q -o t.wav --times t.wav Hello.'
run 'ls -A'
