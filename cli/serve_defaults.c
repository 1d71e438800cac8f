/* SPDX-License-Identifier: Apache-2.0
 * serve.conf and UTTER_SERVE_... -> settings of `utter serve`. */
#include "cli/serve_defaults.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/defaults.h"
#include "cli/report.h"

enum { MOST_PATH = 4096, MOST_LINES = 256, MOST_LINE = MOST_PATH + 64 };
static const char of_the_system[] = "/etc/utter/serve.conf", prefix[] = "UTTER_SERVE_";

/* ---- The file ---- */

/* The value of --config among the arguments, or NULL. *help: one of them asks for help, and nothing else matters. */
static const char *typed_config(int n, char **arguments, bool *help)
{
    const char *typed = NULL;
    for (int i = 0; i < n && strcmp(arguments[i], "--") != 0; i++) {
        const char *word = arguments[i];
        *help = *help || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
        if (strncmp(word, "--config=", 9) == 0) {
            typed = word + 9;
        } else if (strcmp(word, "--config") == 0 && i + 1 < n) {
            typed = arguments[i + 1];
        }
    }
    return typed;
}

/* The file beside that of `utter use`, else the system's; NULL: there is none. */
static const char *usual_file(void)
{
    static char path[MOST_PATH];
    const char *own = defaults_file();
    const char *slash = own ? strrchr(own, '/') : NULL;
    int n = slash ? snprintf(path, sizeof path, "%.*s/serve.conf", (int)(slash - own), own) : -1;
    bool found = n > 0 && n < (int)sizeof path && access(path, F_OK) == 0;
    return found ? path : access(of_the_system, F_OK) == 0 ? of_the_system : NULL;
}

/* Whether the environment names the model or device for every command: it comes before a file. */
static bool is_named_for_all(const char *option)
{
    for (int i = 0; i < N_DEFAULTS; i++) {
        const char *value = getenv(default_table[i].variable);
        if (strcmp(default_table[i].key, option) == 0 && value && value[0]) {
            return true;
        }
    }
    return false;
}

static bool take_line(struct invocation *invocation, char *line, const char *path, int number)
{
    char called[MOST_LINE];
    char *key = defaults_trim(line), *equals = strchr(key, '=');
    if (!key[0] || key[0] == '#') {
        return true;
    }
    snprintf(called, sizeof called, "%s, line %d", path, number);
    if (!equals) {
        return say_no("%s: is not OPTION = VALUE", called);
    }
    *equals = 0;
    key = defaults_trim(key);
    if (strcmp(key, "config") == 0 || strcmp(key, "help") == 0) {
        return say_no("%s: '%s' cannot stand in a file", called, key);
    }
    size_t n = strlen(called);
    snprintf(called + n, sizeof called - n, ": %s", key);
    return is_named_for_all(key) || options_take(invocation, key, defaults_trim(equals + 1), called);
}

/* The settings point into the lines, which stay. */
static bool read_config(struct invocation *invocation, const char *path)
{
    static char lines[MOST_LINES][MOST_LINE];
    FILE *file = fopen(path, "r");
    if (!file) {
        return say_no("%s: cannot read: %s", path, strerror(errno));
    }
    bool good = true;
    int i = 0;
    for (; good && i < MOST_LINES && fgets(lines[i], sizeof lines[i], file); i++) {
        good = defaults_whole(lines[i], sizeof lines[i], path, i + 1) &&
               take_line(invocation, lines[i], path, i + 1);
    }
    if (good && i == MOST_LINES && fgetc(file) != EOF) {
        good = say_no("%s: has more than %d lines", path, MOST_LINES);
    } else if (good && ferror(file)) {
        good = say_no("%s: cannot read: %s", path, strerror(errno));
    }
    fclose(file);
    return good;
}

/* ---- The environment ---- */

/* UTTER_SERVE_API_KEY_FILE of api-key-file. */
static void variable_of(char *variable, size_t size, const char *option)
{
    size_t n = (size_t)snprintf(variable, size, "%s", prefix);
    for (; *option && n + 1 < size; option++, n++) {
        variable[n] = (char)(*option == '-' ? '_' : toupper((unsigned char)*option));
    }
    variable[n] = 0;
}

static bool read_environment(struct invocation *invocation)
{
    for (size_t i = 0; i < options_count(); i++) {
        const struct option option = option_at(i);
        char variable[64];
        variable_of(variable, sizeof variable, option.name);
        const char *value = getenv(variable);
        bool apart = strcmp(option.name, "config") == 0 || strcmp(option.name, "help") == 0;
        if ((option.commands & invocation->command->bit) && !apart && value && value[0] &&
            !options_take(invocation, option.name, value, variable)) {
            return false;
        }
    }
    return true;
}

bool serve_defaults(struct invocation *invocation, int n, char **arguments)
{
    bool help = false;
    const char *path = typed_config(n, arguments, &help), *named = getenv("UTTER_SERVE_CONFIG");
    path = path ? path : named && named[0] ? named : usual_file();
    return help || ((!path || read_config(invocation, path)) && read_environment(invocation));
}
