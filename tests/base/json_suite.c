/* SPDX-License-Identifier: Apache-2.0
 * The verdicts of JSONTestSuite (github.com/nst/JSONTestSuite, folder test_parsing): y_ must be taken, n_ refused, i_
 * may be either, and each at once; and nesting of a million. Usage: json_suite FOLDER. Ends with
 * `N passed, N failed`. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

static const double most_s = 0.005;

/* JSON that is refused here by choice: what is no object and no list, two values for one key (readers disagree on which
 * counts), and a zero in a string (texts here end with one). */
static const char *const not_ours[] = {"y_structure_lonely_", "y_string_space",
    "y_structure_string_empty", "y_object_duplicated_key", "y_string_null_escape",
    "y_object_escaped_null_in_key"};

static bool is_ours(const char *name)
{
    bool ours = true;
    for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++) {
        ours = ours && strncmp(name, not_ours[i], strlen(not_ours[i])) != 0;
    }
    return ours;
}

/* Prints a line for a wrong verdict. */
static bool is_right(const char *name, const char *text, size_t bytes)
{
    utter_error error;
    json_t *value = NULL;
    double began = clock_seconds();
    bool taken = json_text(&value, text, bytes, JSON_LARGE, name, &error) == UTTER_OK;
    double took_s = clock_seconds() - began;
    json_decref(value);
    bool right = name[0] == 'i' || taken == (name[0] == 'y' && is_ours(name));
    if (!right || took_s > most_s) {
        printf("FAIL %s: %s, %.1f ms\n", name, taken ? "taken" : error.text, 1000 * took_s);
    }
    return right && took_s <= most_s;
}

static bool is_right_file(const char *folder, const char *name)
{
    char path[4096], *text = NULL;
    size_t bytes = 0;
    utter_error error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (file_read(path, 1 << 24, &text, &bytes, &error) != UTTER_OK) {
        printf("FAIL %s\n", error.text);
        return false;
    }
    bool right = is_right(name, text, bytes);
    memory_free(text);
    return right;
}

static bool is_right_nested(const char *open)
{
    const size_t n = strlen(open), times = 1000000;
    char *text = memory_new(times, n);
    for (size_t i = 0; text && i < times; i++) {
        memcpy(text + i * n, open, n);
    }
    bool right = text && is_right("n_a_million_deep", text, times * n);
    memory_free(text);
    return right;
}

int main(int argc, char **argv)
{
    DIR *all = argc == 2 ? opendir(argv[1]) : NULL;
    int n = 0, n_right = 0;
    if (!all) {
        fprintf(stderr, "usage: json_suite FOLDER\n");
        return 2;
    }
    for (struct dirent *e; (e = readdir(all));) {
        if (strchr("yni", e->d_name[0]) && e->d_name[1] == '_') {
            n++;
            n_right += is_right_file(argv[1], e->d_name);
        }
    }
    closedir(all);
    if (n == 0) {
        fprintf(stderr, "json_suite: %s holds no case\n", argv[1]);
        return 2;
    }
    n += 2;
    n_right += is_right_nested("[") + is_right_nested("{\"a\":");
    printf("%d passed, %d failed\n", n_right, n - n_right);
    return n_right < n;
}
