/* SPDX-License-Identifier: Apache-2.0
 * Gives every file of the folders on the command line to a fuzz target, as a normal test: a fault ends the
 * program. Without arguments, tests/fuzz/corpus/NAME for the program replay_NAME. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A block of exactly the file's size, so that a sanitizer sees every read beyond it. */
static void replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    long bytes = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        bytes = ftell(f);
        rewind(f);
    }
    uint8_t *data = bytes >= 0 ? malloc(bytes ? (size_t)bytes : 1) : NULL;
    if (!data || fread(data, 1, (size_t)bytes, f) != (size_t)bytes) {
        perror(path);
        exit(1);
    }
    fclose(f);
    printf("%s\n", path);
    fflush(stdout); /* so that the last name is the one that failed */
    LLVMFuzzerTestOneInput(data, (size_t)bytes);
    free(data);
}

static int replay_folder(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) {
        perror(folder);
        exit(1);
    }
    int n = 0;
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_name[0] != '.') {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            replay_file(path);
            n++;
        }
    }
    closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) {
        n += replay_folder(argv[i]);
    }
    const char *name = strstr(argv[0], "replay_");
    if (argc == 1 && name) {
        char folder[1024];
        snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name + strlen("replay_"));
        n = replay_folder(folder);
    }
    printf("[  PASSED  ] %d test(s).\n", n);
    return n ? 0 : 1;
}
