# Checkpoints that are broken: what is wrong is named, exit code 1.
M=$MODELS/tiny06-custom_voice
export M
damage() {
    python3 "$HERE/damage.py" "$M" "$2" "$1"
}
export -f damage
run 'utter info -m no-such-folder'
run 'utter info -m $HERE'
run 'utter info -m $M/config.json'
for what in truncate overlap misshape mistype lose no_header; do
    damage $what $what
    run "utter info -m $what"
done
for what in config.json model.safetensors vocab.json merges.txt tokenizer_config.json speech_tokenizer/config.json \
    speech_tokenizer/model.safetensors; do
    damage $what "no_${what//\//_}"
    run "utter info -m no_${what//\//_}"
done
# Sampling has defaults of its own.
damage generation_config.json no_generation_config.json
run 'utter info -m no_generation_config.json | head -n 1'
damage fill_nan fill_nan
run 'utter say -m fill_nan -v ryan -o x.wav --codes x.json hello'
run 'ls -A | grep -v -e "^no_"'
