# Speed, volume and rate of what is said.
M=$MODELS/tiny06-custom_voice
export M
frames() { # samples and rate of a WAV file of 16 bits
    python3 -c 'import sys, wave; w = wave.open(sys.argv[1]); print(w.getnframes(), w.getframerate())' "$1"
}
peak() { # of A over that of B
    python3 -c 'import array, sys, wave
a, b = (max(map(abs, array.array("h", w.readframes(w.getnframes())))) for w in map(wave.open, sys.argv[1:]))
print("%.2f" % (a / b))' "$1" "$2"
}
export -f frames peak
run 'utter say -m $M -v ryan --max-frames 9 -o a.wav Hello there.; frames a.wav'
run 'utter say -m $M -v ryan --max-frames 9 --speed 1 --volume 1 --rate 24000 -o b.wav Hello there.; cmp a.wav b.wav'
run 'utter say -m $M -v ryan --max-frames 9 --volume 0.5 -o b.wav Hello there.; frames b.wav; peak b.wav a.wav'
run 'utter say -m $M -v ryan --max-frames 9 --speed 2 -o b.wav Hello there.; frames b.wav | sed "s/^8[5-7].. /half /"'
run 'utter say -m $M -v ryan --max-frames 9 --rate 16000 -o b.wav Hello there.; frames b.wav'
run 'utter say -m $M -v ryan --max-frames 9 --rate 48000 -o b.opus Hello there.; head -c 4 b.opus; echo'
run 'utter say -m $M -v ryan --max-frames 9 --rate 22050 -o b.opus Hello there.'
run 'utter say -m $M -v ryan --max-frames 9 --rate 8000 --json -o b.wav Hello there. | grep -o "\"seconds\":[0-9.]*"'
run 'utter say -m $M -v ryan --max-frames 9 --codes a.json -o b.wav Hello there.; utter codec decode -m $M a.json --speed 0.5 -o b.wav; frames b.wav | sed "s/^3[3-5]... /twice /"'
run 'printf "One.\nTwo.\n" | utter say -m $M -v ryan --max-frames 5 --lines --rate 8000 -o l.wav; frames l-0001.wav; frames l-0002.wav'
run 'utter say -m $M -v ryan --max-frames 5 --speed 5 -o b.wav Hi'
run 'utter say -m $M -v ryan --max-frames 5 --rate 100 -o b.wav Hi'
