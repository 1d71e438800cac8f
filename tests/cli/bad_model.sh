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
for what in config.json generation_config.json model.safetensors vocab.json merges.txt tokenizer_config.json \
    speech_tokenizer/config.json speech_tokenizer/model.safetensors; do
    damage $what "no_$(basename "$(dirname "$what")")_$(basename "$what")"
    run "utter info -m no_$(basename "$(dirname "$what")")_$(basename "$what")"
done
damage fill_nan fill_nan
run 'utter say -m fill_nan -v ryan -o x.wav --codes x.json hello'
run 'ls -A | grep -v -e "^no_"'
