# Requests that the model or the text cannot carry: one line, exit code 1, nothing written.
M=$MODELS/tiny06-custom_voice
export M
run 'utter say -m $M -v rayn -o x.wav hello'
run 'utter say -m $M -v ryan -l klingon -o x.wav hello'
run 'utter say -m $M -v ryan -o x.wav ""'
run 'utter say -m $M -v ryan -o x.wav "   "'
run 'printf "\n\n" | utter say -m $M -v ryan -o x.wav -'
run 'utter say -m $M -v ryan -o x.wav - </dev/null'
run 'utter say -m $M -v ryan -o x.wav $'"'"'bad \xff byte'"'"
run 'printf "cut \303" | utter say -m $M -v ryan -o x.wav -'
run 'printf "cut \303" | utter say -m $M -v ryan --layout stream -o x.wav -'
run 'printf "\n\nbad \377" | utter say -m $M -v ryan -o x.wav -'
run '(printf "\n"; sleep 0.1; printf "\n\none\ntwo \303") | utter say -m $M -v ryan -o x.wav -'
run 'utter say -m $MODELS/tiny17-voice_design --instruct $'"'"'ab\xff'"'"' -o x.wav hello'
# It is refused while it still comes.
run 'timeout 100 yes hi | utter say -m $M -v ryan -o x.wav -'
run 'utter tokens -m $M $'"'"'bad \xc0\x80 byte'"'"
run 'utter say -m $MODELS/tiny06-base --max-frames 3 -o x.wav hello; rm x.wav'
run 'utter say -m $MODELS/tiny17-voice_design -v ryan -o x.wav hello'
run 'utter say -m $MODELS/nan-scores -v ryan -o x.wav --codes x.json hello'
run 'utter say -m $MODELS/nan-sound -v ryan -o x.wav --codes x.json hello'
run 'utter say -m $M -v ryan -o x.flac --sample f32 hello'
run 'utter say -m $M -v ryan -o - --format flac hello | cat'
run 'utter codec decode -m $M no-such.json -o x.wav'
run 'echo "{" | utter codec decode -m $M - -o x.wav'
run 'echo "{}" | utter codec decode -m $M - -o x.wav'
run 'echo "{\"codes\":[]}" | utter codec decode -m $M - -o x.flac'
run 'echo "{\"codes\":[[1,2,3]]}" | utter codec decode -m $M - -o x.wav'
run 'echo "{\"codes\":[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,64]]}" | utter codec decode -m $M - -o x.wav'
run 'echo "{\"codes\":[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,-1]]}" | utter codec decode -m $M - -o x.wav'
run 'utter verify -m $M no-such.safetensors'
run 'utter verify -m $M $M/config.json'
run 'ls -A'
