# Books: what people see. tests/book has the rest.
printf '# One\n\nHello there.\n\n## Two\n\nMore of it.\n' >b.md
run 'utter read --list b.md'
run 'utter read --list --json --chapters 2 b.md'
run 'utter read -o b.wav b.md; ls'
run 'utter read -q -o b.mp3 --split --chapters 2 b.md; ls; rm b-*'
# What a terminal shows meanwhile.
run 'printf "# The train left the old station at noon, and nobody was told.\n\n%.0s" {1..25} >t.md; python3 "$HERE/terminal.py" "chapter N of N, N % of the text, N x real time, N:N:N left" utter read --lanes 1 -o t.wav t.md; rm t.*'
run 'utter read'
run 'utter read no-such.epub'
run 'utter read --list b.wav'
run 'utter read --chapters 3 b.md'
run 'utter read -o b.md b.md'
run 'utter read -o - b.md'
run 'utter read --loudness 3 b.md'
run 'mkdir b.flac.parts; (flock -n 9; utter read -o b.flac b.md) 9>b.flac.parts/manifest.jsonl; rm -r b.flac.parts'
