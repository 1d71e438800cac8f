/* SPDX-License-Identifier: Apache-2.0
 * Refuses to replace a file of another kind than the new one, and compares outputs with everything else that
 * was typed and is a file. Which options name files need not be known: a word that names no file equals none. */
#include "cli/overwrite.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/file_kind.h"
#include "cli/report.h"

enum { MOST_PATH = 4096 };

/* Whether both are there, and one. */
static bool is_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The folder that a name stands in; returns the name there. */
static const char *folder_of(char folder[MOST_PATH], const char *path)
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, MOST_PATH, "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
    return slash ? slash + 1 : path;
}

bool overwrite_same_file(const char *a, const char *b)
{
    char of_a[MOST_PATH], of_b[MOST_PATH];
    const char *name_a = folder_of(of_a, a), *name_b = folder_of(of_b, b);
    return is_same(a, b) || (strcmp(name_a, name_b) == 0 && is_same(of_a, of_b));
}

/* Whether `input` is the file `output`, or the folder that it stands in. `voices mix` takes NAME:WEIGHT. */
static bool reads(const char *input, const char *output)
{
    char name[MOST_PATH], folder[MOST_PATH];
    struct stat there;
    if (snprintf(name, sizeof name, "%s", input) >= (int)sizeof name) {
        return false;
    }
    char *weight = strrchr(name, ':');
    if (weight && stat(name, &there) != 0) {
        *weight = 0;
    }
    folder_of(folder, output);
    return is_same(name, output) || is_same(name, folder);
}

/* The kind that the command writes there; FILE_OTHER: any, samples without a head. */
static enum file_kind kind_written(const struct invocation *invocation, const struct setting *output)
{
    const struct settings *s = &invocation->settings;
    const unsigned voices = COMMAND_CLONE | COMMAND_DESIGN | COMMAND_VOICES_MIX | COMMAND_QUANTIZE;
    const unsigned texts = COMMAND_CODEC_ENCODE | COMMAND_ALIGN_HEADS;
    const char *dot = strrchr(output->text, '.');
    bool is_raw = s->format.text ? strcmp(s->format.text, "raw") == 0 : dot && strcmp(dot, ".raw") == 0;
    return output != &s->output || (invocation->command->bit & texts) ? FILE_TEXT
           : (invocation->command->bit & voices)                      ? FILE_TENSORS
           : is_raw                                                   ? FILE_OTHER
                                                                      : FILE_SOUND;
}

static int check_kind(const struct invocation *invocation, const struct setting *output)
{
    enum file_kind there = file_kind(output->text), written = kind_written(invocation, output);
    return there == FILE_NONE || there == written || written == FILE_OTHER
               ? 0
               : fail(1, "%s: %s holds %s, which would be lost (choose another name, or remove it)",
                     invocation->command->name, output->text,
                     there == FILE_OTHER ? "something else" : file_kind_text(there));
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
    for (size_t i = 0; i < offsetof(struct settings, plain) / sizeof *all; i++) {
        bool other = &all[i] != &s->output && &all[i] != &s->codes && &all[i] != &s->times &&
                     &all[i] != &s->trace;
        if (other && all[i].given && all[i].text && reads(all[i].text, output->text)) {
            return fail(1, "%s: %s is read by this command and would be lost (choose another name)",
                invocation->command->name, output->text);
        }
    }
    const bool words_are_text = invocation->command->bit == COMMAND_SAY;
    for (int i = 0; i < invocation->n_words && !words_are_text; i++) {
        if (reads(invocation->words[i], output->text)) {
            return fail(1, "%s: %s is read by this command and would be lost (choose another name)",
                invocation->command->name, output->text);
        }
    }
    return check_kind(invocation, output);
}

int overwrite_check(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    const struct setting *const outputs[] = {&s->output, &s->codes, &s->times, &s->trace};
    int code = 0;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs && code == 0; i++) {
        code = check_one(invocation, outputs[i]);
    }
    return code;
}
