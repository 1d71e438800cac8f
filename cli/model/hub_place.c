/* SPDX-License-Identifier: Apache-2.0
 * Where the hub is, where its files lie, and the token, by the environment that its own client goes by. */
#include "cli/model/hub_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATH = 4096 };

/* A variable that says something; NULL else. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* The client's own folder in home[MOST_PATH]; NULL: none. */
static const char *hub_home(char *home)
{
    const char *own = variable("HF_HOME"), *cache = variable("XDG_CACHE_HOME"),
               *user = variable("HOME");
    int n = own                        ? snprintf(home, MOST_PATH, "%s", own)
            : cache && cache[0] == '/' ? snprintf(home, MOST_PATH, "%s/huggingface", cache)
            : user                     ? snprintf(home, MOST_PATH, "%s/.cache/huggingface", user)
                                       : -1;
    return n >= 0 && n < MOST_PATH ? home : NULL;
}

const char *hub_folder(void)
{
    static char folder[MOST_PATH + 8];
    char home[MOST_PATH];
    const char *own = variable("HF_HUB_CACHE");
    if (own || !hub_home(home)) {
        return own;
    }
    snprintf(folder, sizeof folder, "%s/hub", home);
    return folder;
}

const char *hub_token(void)
{
    static char token[512];
    char home[MOST_PATH], path[MOST_PATH + 8];
    const char *own = variable("HF_TOKEN");
    if (own || !hub_home(home)) {
        return own;
    }
    snprintf(path, sizeof path, "%s/token", home);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(token, sizeof token, file)) {
        token[0] = 0;
    }
    if (file) {
        fclose(file);
    }
    token[strcspn(token, "\r\n ")] = 0;
    return token[0] ? token : NULL;
}

const char *hub_address(void)
{
    static char address[MOST_PATH];
    const char *own = variable("HF_ENDPOINT");
    snprintf(address, sizeof address, "%s", own ? own : "https://huggingface.co");
    for (size_t n = strlen(address); n > 0 && address[n - 1] == '/'; n--) {
        address[n - 1] = 0;
    }
    return address;
}
