# Speech that is heard or written while it is made, and text that comes in pieces: what has threads of its own. Looked
# at by the thread sanitizer too.
M=$MODELS/tiny06-custom_voice
export M
run 'utter say -m $M -v ryan --max-frames 9 -o a.wav --codes a.json Hello there.'
run '(printf "Hel"; sleep 0.2; printf "lo there.") | utter say -m $M -v ryan --max-frames 9 -o b.wav -; cmp a.wav b.wav'
run 'PLAYED=p.raw utter say -m $M -v ryan --max-frames 9 Hello there.; od -A n -t f4 -v p.raw | wc -w'
run 'PLAYED=p.raw utter codec decode -m $M a.json; utter codec decode -m $M a.json -o - --sample f32 | cmp - p.raw'
run 'PLAYED=/dev/full utter say -m $M -v ryan --max-frames 9 Hello there.'
run 'rm p.raw'
run 'utter say -m $M -v ryan --layout stream --max-frames 9 -o s.wav Hello there.; stat -c %s s.wav'
run '(printf "Hel"; sleep 0.2; printf "lo there.") | utter say -m $M -v ryan --layout stream --max-frames 9 -o t.wav -; cmp s.wav t.wav'
run '2_stream $M; head -c 4 first.wav; head -c 4 second.wav; echo'
run 'ls -A'
