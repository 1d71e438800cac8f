# C source -> the same lines with comments, strings and character constants blanked, so that a search finds
# code only. An #include keeps its name. Used by check_layers and check_sizes; runs under any awk.
FNR == 1 { in_comment = 0 }
{
    line = $0
    out = ""
    keep_strings = (!in_comment && line ~ /^[ \t]*#[ \t]*include/)
    n = length(line)
    for (i = 1; i <= n; i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (in_comment) {
            if (two == "*/") {
                in_comment = 0
                i++
            }
        } else if (two == "/*") {
            in_comment = 1
            out = out " "
            i++
        } else if (two == "//") {
            break
        } else if ((c == "\"" || c == "'") && !keep_strings) {
            for (i++; i <= n && substr(line, i, 1) != c; i++) {
                if (substr(line, i, 1) == "\\") {
                    i++
                }
            }
            out = out c c
        } else {
            out = out c
        }
    }
    print FILENAME "\t" FNR "\t" out
}
