/* SPDX-License-Identifier: Apache-2.0
 * Lines `key = value` and the environment -> settings. */
#include "cli/defaults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/report.h"

enum { MOST_PATH = 4096, MOST_LINE = MOST_PATH + 64 };

const struct default_choice default_table[N_DEFAULTS] = {
    {"UTTER_MODEL", "model", offsetof(struct settings, model)},
    {"UTTER_VOICE", "voice", offsetof(struct settings, voice)},
    {"UTTER_DEVICE", "device", offsetof(struct settings, device)},
};

/* The path of `name` in the folder of the variable, or else in `usual` of the home folder; NULL: there is none. */
static const char *user_path(
    char path[MOST_PATH], const char *variable, const char *usual, const char *name)
{
    const char *folder = getenv(variable), *home = getenv("HOME");
    int n = folder && folder[0] == '/' ? snprintf(path, MOST_PATH, "%s/%s", folder, name)
            : home && home[0] == '/'   ? snprintf(path, MOST_PATH, "%s/%s/%s", home, usual, name)
                                       : -1;
    return n >= 0 && n < MOST_PATH ? path : NULL;
}

const char *defaults_file(void)
{
    static char path[MOST_PATH];
    return user_path(path, "XDG_CONFIG_HOME", ".config", "utter/config");
}

const char *defaults_cache(void)
{
    static char path[MOST_PATH];
    return user_path(path, "XDG_CACHE_HOME", ".cache", "utter");
}

char *defaults_trim(char *text)
{
    text += strspn(text, " \t");
    for (size_t n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]); n--) {
        text[n - 1] = 0;
    }
    return text;
}

static int take_line(char values[N_DEFAULTS][MOST_LINE], char *line, const char *path, int number)
{
    char *key = defaults_trim(line), *equals = strchr(key, '=');
    if (!key[0] || key[0] == '#') {
        return 0;
    }
    if (equals) {
        *equals = 0;
        key = defaults_trim(key);
        const char *value = defaults_trim(equals + 1);
        for (int i = 0; i < N_DEFAULTS; i++) {
            if (strcmp(key, default_table[i].key) == 0 && value[0]) {
                snprintf(values[i], MOST_LINE, "%s", value);
                return 0;
            }
        }
    }
    return fail(
        1, "%s, line %d: is not \"model = NAME\", \"voice = NAME\" or \"device = NAME\"", path, number);
}

/* What does not fit would be taken for a line of its own. */
bool defaults_whole(const char *line, size_t size, const char *path, int number)
{
    return strlen(line) < size - 1 || line[size - 2] == '\n' ||
           say_no("%s, line %d: is longer than %zu bytes", path, number, size - 2);
}

/* A file that this user may not read is another's, as where HOME is: it chooses nothing, and that is told once. */
static FILE *open_file(const char *path, bool quiet, int *code)
{
    static bool told;
    FILE *file = path ? fopen(path, "r") : NULL;
    if (path && !file && errno == EACCES) {
        if (!quiet && !told) {
            told = true;
            note("%s: cannot read: %s (it chooses no model, voice or device)", path, strerror(errno));
        }
    } else if (path && !file && errno != ENOENT && errno != ENOTDIR) {
        *code = fail(1, "%s: cannot read: %s", path, strerror(errno));
    }
    return file;
}

static int read_file(char values[N_DEFAULTS][MOST_LINE], bool quiet)
{
    char line[MOST_LINE];
    const char *path = defaults_file();
    int code = 0;
    FILE *file = open_file(path, quiet, &code);
    for (int number = 1; file && code == 0 && fgets(line, sizeof line, file); number++) {
        code =
            defaults_whole(line, sizeof line, path, number) ? take_line(values, line, path, number) : 1;
    }
    if (file && code == 0 && ferror(file)) {
        code = fail(1, "%s: cannot read: %s", path, strerror(errno));
    }
    if (file) {
        fclose(file);
    }
    return code;
}

static bool takes(const struct command *command, size_t setting)
{
    for (size_t i = 0; i < options_count(); i++) {
        const struct option option = option_at(i);
        if ((option.commands & command->bit) && option.setting == setting) {
            return true;
        }
    }
    return false;
}

int defaults_apply(struct invocation *invocation)
{
    static char values[N_DEFAULTS][MOST_LINE];
    struct settings *s = &invocation->settings;
    const bool is_use = invocation->command->bit == COMMAND_USE;
    /* `utter load` asks a server, which has voices of its own; `utter use MODEL` begins anew, also where the file is
     * wrong. */
    if (invocation->command->bit == COMMAND_LOAD ||
        (is_use && (invocation->n_words || s->voice.given || s->device.given))) {
        return 0;
    }
    memset(values, 0, sizeof values); /* what an earlier call has read chooses nothing any more */
    int code = read_file(values, s->quiet.given);
    for (int i = 0; i < N_DEFAULTS && code == 0; i++) {
        struct setting *setting = (struct setting *)((char *)s + default_table[i].setting);
        const char *chosen = getenv(default_table[i].variable);
        bool own_model = !s->model.given && (!s->model.rule || s->model.rule == defaults_file());
        bool of_file = values[i][0] && (setting != &s->voice || own_model);
        if (setting->given || !(is_use || takes(invocation->command, default_table[i].setting))) {
            continue;
        }
        if (chosen && chosen[0]) {
            setting->text = chosen;
            setting->rule = default_table[i].variable;
        } else if (of_file) {
            setting->text =
                strcmp(values[i], "builtin") == 0 && setting == &s->model ? NULL : values[i];
            setting->rule = defaults_file();
        }
    }
    return code;
}
