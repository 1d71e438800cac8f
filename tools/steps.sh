# shellcheck shell=bash
# Steps of tests, one line each; sourced by ./test and .ci/run, from the root of the repository.
#   step NAME MINUTES COMMAND ...   runs the command; what it says goes to build/test-log/NAME
#   step_add PASSED FAILED SKIPPED  adds to the sum
#   step_skip NAME REASON           tells of a step that cannot run here
#   steps_end                       what failed, with the command that repeats it; what was skipped; the sum
# Steps may run beside others, in a background job that is waited for before steps_end. Ctrl-C ends them all at once.
# logs=FOLDER before it is sourced: another folder than build/test-log. show=yes: what a command says is also shown.
# note=WORDS: a line before the sum.
logs=${logs:-build/test-log}
rm -rf "$logs"
# In sums, a line of numbers for each step; in broken, a line for each that failed: log, exit status, command; in
# running, a file for each step that runs, with the process of its `timeout`, which has a group of its own.
mkdir -p "$logs/.steps/running" || exit 2
touch "$logs/.steps/sums" "$logs/.steps/broken"

steps_stop() {
    trap - INT TERM
    # shellcheck disable=SC2046 # lists of numbers
    kill $(jobs -p) $(cat "$logs"/.steps/running/* 2>/dev/null) 2>/dev/null
    echo >&2
    exit 130
}
trap steps_stop INT TERM

step_log() { if [ "${show:-}" ]; then tee "$1"; else cat >"$1"; fi; }

step_add() { echo "$@" >>"$logs/.steps/sums"; }

# Who looks on sees what runs.
step_line() {
    if [ ! -t 1 ] || [ "${show:-}" ]; then
        [ $# -eq 0 ] || printf '%s\n' "$1"
        return
    fi
    printf '\r\033[K%s%s' "${1:+$1$'\n'}" "$(cd "$logs/.steps/running" && printf '... %s ' *)"
}

# Adds the last "N passed, N failed[, N skipped]" that the command says to the sum. One that ends badly without having
# counted a failure is one.
step() {
    local name=$1 minutes=$2 log began=$SECONDS status p f s processors result=ok TIMEFORMAT='%U %S'
    shift 2
    log=$logs/${name// /-}
    : >"$logs/.steps/running/$name"
    if [ "${show:-}" ]; then echo "=== $name"; else step_line; fi
    {
        time {
            timeout --kill-after=60 "${minutes}m" "$@" 2>&1 </dev/null &
            echo $! >"$logs/.steps/running/$name"
            wait $!
        } | step_log "$log"
        status=${PIPESTATUS[0]}
    } 2>"$log.time"
    rm "$logs/.steps/running/$name"
    processors=$(awk 'END { printf "%.0f", $1 + $2 }' "$log.time")
    rm "$log.time"
    # "3 passed, 0 failed, 1 skipped" -> 3 0 1
    read -r p f s < <(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1 | tr -dc '0-9 \n')
    p=${p:-0} f=${f:-0} s=${s:-0}
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ "$f" -ne 0 ]; then
        result=FAILED
        [ "$status" -ne 124 ] || echo "took longer than $minutes minutes" >>"$log"
        printf '%s\t%s\t%s\n' "$log" "$status" "$(printf '%q ' "$@")" >>"$logs/.steps/broken"
    fi
    step_line "$(printf '%s%-34s %-6s %5d passed, %d failed%s  %d s, processors %d s' "${show:+=== }" "$name" \
        "$result" "$p" "$f" "$([ "$s" -eq 0 ] || echo ", $s skipped")" $((SECONDS - began)) "$processors")"
    step_add "$p" "$f" "$s"
    [ "$status" -eq 0 ]
}

step_skip() {
    step_line "$(printf '%-34s skip' "$1")"
    echo "skip: $2" >"$logs/${1// /-}"
    step_add 0 0 1
}

# Of a log what tells of failures: what tools/run_tests repeats of them at its end; or from the first that a program
# reports to the end; or its last lines.
failures_of() {
    awk '{ line[NR] = $0 } !told && /^====/ { told = NR } !first && /^FAIL|error:|\*\*\*/ { first = NR }
        END {
            if (told) { first = told }
            if (!first) { first = NR > 60 ? NR - 59 : 1 }
            for (i = first < NR - 199 ? NR - 199 : first; i <= NR; i++) print line[i]
        }' "$1"
}

steps_end() {
    local log status command passed failed skipped name
    [ ! -t 1 ] || [ "${show:-}" ] || printf '\r\033[K'
    echo
    while IFS=$'\t' read -r log status command; do
        printf '==== again: %s(exit status %s; the whole of what it said: %s)\n' "$command" "$status" "$log"
        failures_of "$log"
        echo
    done <"$logs/.steps/broken"
    # A step that began beside and whose shell died has no line in the sums.
    for name in "$logs"/.steps/running/*; do
        [ -e "$name" ] || continue
        echo "==== ${name##*/}: began and did not end"
        step_add 0 1 0
    done
    read -r passed failed skipped \
        < <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$logs/.steps/sums")
    [ "$skipped" -eq 0 ] || grep -hi '^skip' "$logs"/* 2>/dev/null | sort -u
    # Last, so that they are seen where only the end of a long log is shown.
    [ "$failed" -eq 0 ] || grep -hE '^FAIL |^\[  FAILED  \] [a-z]' "$logs"/* 2>/dev/null | cut -c1-300 | sort -u
    echo "what the tests said: $logs"
    [ -z "${note:-}" ] || echo "$note"
    if [ "$skipped" -eq 0 ]; then
        echo "$passed passed, $failed failed"
    else
        echo "$passed passed, $failed failed, $skipped skipped"
    fi
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
