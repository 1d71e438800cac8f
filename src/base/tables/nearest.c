/* SPDX-License-Identifier: Apache-2.0
 * How far one name is from another, letter by letter, and whether they are the same but for their accents. */
#include "base/tables/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

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

/* ---- Accents, composed in a buffer of characters, so that no memory is asked for ---- */

static bool is_ascii(const char *text)
{
    while (*text && (unsigned char)*text < 0x80) {
        text++;
    }
    return !*text;
}

const char *name_composed(char *buffer, const char *name)
{
    utf8proc_int32_t all[NAME_COMPOSED / 4];
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    const utf8proc_ssize_t room = NAME_COMPOSED / 4 - 1; /* and the zero behind the last one */
    if (is_ascii(name) || strlen(name) > (size_t)room) {
        return name;
    }
    utf8proc_ssize_t n = utf8proc_decompose(
        (const utf8proc_uint8_t *)name, (utf8proc_ssize_t)strlen(name), all, room, options);
    n = n > 0 && n <= room ? utf8proc_reencode(all, n, options) : -1; /* in its place, with a zero */
    if (n <= 0) {
        return name;
    }
    memcpy(buffer, all, (size_t)n + 1);
    return buffer;
}

bool names_same(const char *one, const char *other)
{
    char composed[2][NAME_COMPOSED];
    return strcasecmp(one, other) == 0 ||
           (!is_ascii(one) && !is_ascii(other) &&
               strcasecmp(name_composed(composed[0], one), name_composed(composed[1], other)) == 0);
}
