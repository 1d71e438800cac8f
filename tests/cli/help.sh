# Every command explains itself, and the manual knows every option.
for command in say clone design voices 'voices mix' info tokens 'codec decode' 'codec encode' verify bench serve mcp load models pull use completion job 'job submit' 'job work' 'job status' 'job retry' 'job collect'; do
    run "utter $command --help | sed -n '1p;3p;\$p'"
done
run 'utter help say | cmp - <(utter say --help)'
run 'utter -h | cmp - <(utter --help)'
run 'utter help'
options_in_help() {
    for command in say clone design voices 'voices mix' info tokens 'codec decode' 'codec encode' verify bench serve mcp load models pull use completion job 'job submit' 'job work' 'job status' 'job retry' 'job collect'; do
        utter $command --help
    done | grep -o '^ *\(-.,\)\? *--[a-z-]*' | grep -o -e '--[a-z-]*' | sort -u
}
export -f options_in_help
run 'options_in_help | wc -l'
run 'for o in $(options_in_help); do grep -qE -e "[^a-z-]${o//-/\\\\-}([^a-z\\\\]|\$)" $ROOT/docs/utter.1 || echo "$o is not in the manual"; done'
