/* SPDX-License-Identifier: Apache-2.0
 * How far one name is from another, letter by letter. */
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/minmax.h"

enum { LONGEST = 64 }; /* names of more bytes are far from everything */

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Changes of one letter (wrong, missing, extra, two swapped) that lead from a to b. */
static int edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST) {
        return LONGEST;
    }
    int d[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (int)(i + j);
                continue;
            }
            int best = d[i - 1][j - 1] + !same_letter(a[i - 1], b[j - 1]);
            best = min(d[i - 1][j] + 1, best);
            best = min(d[i][j - 1] + 1, best);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1])) {
                best = min(d[i - 2][j - 2] + 1, best);
            }
            d[i][j] = best;
        }
    }
    return d[n][m];
}

struct nearest nearest_begin(const char *typed)
{
    return (struct nearest){.typed = typed, .least = strlen(typed) < 4 ? 2 : 3};
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    int distance = edit_distance(nearest->typed, name);
    if (distance < nearest->least) {
        nearest->least = distance;
        nearest->name = name;
    }
}

const char *nearest_name(const char *typed, const char *const *names, size_t n)
{
    struct nearest nearest = nearest_begin(typed);
    for (size_t i = 0; i < n; i++) {
        nearest_offer(&nearest, names[i]);
    }
    return nearest.name;
}

const char *nearest_hint(const struct nearest *nearest, char *out, size_t size)
{
    out[0] = 0;
    if (nearest->name) {
        snprintf(out, size, "did you mean %s? ", nearest->name);
    }
    return out;
}
