# What is told about a model.
M=$MODELS/tiny06-custom_voice
export M
run 'utter voices -m $M'
run 'utter voices -m $M --json'
run 'utter voices -m $MODELS/fine-tuned'
run 'utter voices -m $MODELS/tiny06-base'
run 'utter info -m $M --threads 1'
run 'utter info -m $MODELS/unusual --json --threads 1'
run 'utter quantize -q -m $M --weights q8 -o packed && utter voices -m packed && utter say -m packed -v ryan --max-frames 3 -o x.wav hello; stat -c %s x.wav'
# Ctrl-C while the file gets its name.
run 'LD_PRELOAD=libportaudio.so.2 ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 utter quantize -m $M --weights q8 -o late; echo $?; cmp packed late; rm late'
run 'utter quantize -m packed --weights q4 -o x'
run 'utter bench -m $M --words 2 --lanes 1,2 --runs 1 --max-frames 4 --threads 1'
run 'utter bench -m $M --words 2 --runs 2 --json'
# What the time to the first sound is made of is all of it.
run 'utter bench -m $M --words 2 --runs 1 --json | python3 -c "import json, sys; b = json.load(sys.stdin); print(abs(sum(b[\"first_ms\"].values()) - b[\"ttfc_ms\"][\"median\"]) < 1e-3)"'
run 'utter verify -m $MODELS/eos-first $ROOT/tests/golden/eos-first.safetensors'
run 'utter verify -m $MODELS/eos-first $ROOT/tests/golden/eos-first.safetensors --json'
run 'utter verify -m $M $ROOT/tests/golden/eos-first.safetensors'
# fp64 decides where official fp32 is far: for this sound; against it, for official fp32 is nearer, or both are far.
move() { python3 "$HERE/arbiter.py" "$ROOT/tests/golden/quiet.safetensors" moved "$@"; }
export -f move
run 'move 2e-3 0; utter verify -m $MODELS/quiet moved'
run 'move 2e-3 2e-3; utter verify -m $MODELS/quiet moved'
run 'move 1.2e-3 8e-4; utter verify -m $MODELS/quiet moved'
run 'move 4e-3 1.5e-3; utter verify -m $MODELS/quiet moved'
# The first sample alone.
run 'move 1.5e-3 1.5e-3 1; utter verify -m $MODELS/quiet moved'
