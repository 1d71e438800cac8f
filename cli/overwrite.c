/* SPDX-License-Identifier: Apache-2.0
 * Compares outputs with everything else that was typed and is a file. Which options name files need not be known: a
 * word that names no file equals none. */
#include "overwrite.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"

enum { MOST_PATH = 4096 };

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether `input` is the file `output`, or the folder that it stands in. `voices mix` takes NAME:WEIGHT. */
static bool reads(const char *input, const char *output, const struct stat *its)
{
    char name[MOST_PATH], folder[MOST_PATH];
    struct stat at, around;
    const char *slash = strrchr(output, '/');
    if (snprintf(name, sizeof name, "%s", input) >= (int)sizeof name) {
        return false;
    }
    if (stat(name, &at) != 0) {
        char *weight = strrchr(name, ':');
        if (!weight) {
            return false;
        }
        *weight = 0;
        if (stat(name, &at) != 0) {
            return false;
        }
    }
    snprintf(
        folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - output) : 1, slash ? output : ".");
    return same(&at, its) || (S_ISDIR(at.st_mode) && stat(folder, &around) == 0 && same(&at, &around));
}

static int check_one(const struct invocation *invocation, const struct setting *output)
{
    const struct settings *s = &invocation->settings;
    const struct setting *all = (const struct setting *)s;
    struct stat about;
    if (!output->given || strcmp(output->text, "-") == 0 || stat(output->text, &about) != 0 ||
        !S_ISREG(about.st_mode)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof *s / sizeof *all; i++) {
        bool other = &all[i] != &s->output && &all[i] != &s->codes && &all[i] != &s->trace;
        if (other && all[i].given && all[i].text && reads(all[i].text, output->text, &about)) {
            return fail(1, "%s: %s is read by this command and would be lost (choose another name)",
                invocation->command->name, output->text);
        }
    }
    const bool words_are_text = invocation->command->bit == COMMAND_SAY;
    for (int i = 0; i < invocation->n_words && !words_are_text; i++) {
        if (reads(invocation->words[i], output->text, &about)) {
            return fail(1, "%s: %s is read by this command and would be lost (choose another name)",
                invocation->command->name, output->text);
        }
    }
    return 0;
}

int overwrite_check(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    const struct setting *const outputs[] = {&s->output, &s->codes, &s->trace};
    int code = 0;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs && code == 0; i++) {
        code = check_one(invocation, outputs[i]);
    }
    return code;
}
