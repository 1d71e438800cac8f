# shellcheck shell=bash
# Steps of tests, one line each; sourced by ./test and .ci/run, from the root of the repository.
#   step NAME MINUTES COMMAND ...   runs the command; what it says goes to build/test-log/NAME
#   step_skip NAME REASON           tells of a step that cannot run here
#   steps_end                       what failed, with the command that repeats it; what was skipped; the sum
# logs=FOLDER before it is sourced: another folder than build/test-log. show=yes: what a command says is also shown.
# note=WORDS: a line before the sum.
passed=0 failed=0 skipped=0 broken=()
logs=${logs:-build/test-log}
rm -rf "$logs"
mkdir -p "$logs" || exit 2

step_log() { if [ "${show:-}" ]; then tee "$1"; else cat >"$1"; fi; }

# Adds the last "N passed, N failed[, N skipped]" that the command says to the sum. One that ends badly without having
# counted a failure is one.
step() {
    local name=$1 minutes=$2 log began=$SECONDS status p f s processors result=ok TIMEFORMAT='%U %S'
    shift 2
    log=$logs/${name// /-}
    if [ "${show:-}" ]; then echo "=== $name"; else printf '%-34s ' "$name"; fi # who looks on sees what runs
    { time timeout --kill-after=60 "${minutes}m" "$@" 2>&1 </dev/null | step_log "$log"; status=${PIPESTATUS[0]}; } \
        2>"$log.time"
    processors=$(awk 'END { printf "%.0f", $1 + $2 }' "$log.time")
    rm "$log.time"
    # "3 passed, 0 failed, 1 skipped" -> 3 0 1
    read -r p f s < <(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1 | tr -dc '0-9 \n')
    p=${p:-0} f=${f:-0} s=${s:-0}
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ "$f" -ne 0 ]; then
        result=FAILED
        [ "$status" -ne 124 ] || echo "took longer than $minutes minutes" >>"$log"
        broken+=("$log" "$(printf '%q ' "$@")" "$status")
    fi
    [ -z "${show:-}" ] || printf '%-34s ' "=== $name"
    printf '%-6s %5d passed, %d failed%s  %d s, processors %d s\n' "$result" "$p" "$f" \
        "$([ "$s" -eq 0 ] || echo ", $s skipped")" $((SECONDS - began)) "$processors"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    [ "$status" -eq 0 ]
}

step_skip() {
    printf '%-34s skip\n' "$1"
    echo "skip: $2" >"$logs/${1// /-}"
    skipped=$((skipped + 1))
}

# Of a log what tells of failures: from the first that a program reports to the end, or its last lines.
failures_of() {
    awk '{ line[NR] = $0 } !first && /^====|^FAIL|^FAILED|error:|\*\*\*/ { first = NR }
        END {
            if (!first) { first = NR > 60 ? NR - 59 : 1 }
            for (i = first < NR - 199 ? NR - 199 : first; i <= NR; i++) print line[i]
        }' "$1"
}

steps_end() {
    local i
    echo
    for ((i = 0; i < ${#broken[@]}; i += 3)); do
        printf '==== again: %s(exit status %s; the whole of what it said: %s)\n' "${broken[i + 1]}" "${broken[i + 2]}" \
            "${broken[i]}"
        failures_of "${broken[i]}"
        echo
    done
    [ "$skipped" -eq 0 ] || grep -hi '^skip' "$logs"/* | sort -u
    echo "what the tests said: $logs"
    [ -z "${note:-}" ] || echo "$note"
    if [ "$skipped" -eq 0 ]; then
        echo "$passed passed, $failed failed"
    else
        echo "$passed passed, $failed failed, $skipped skipped"
    fi
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
