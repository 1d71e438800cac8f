/* SPDX-License-Identifier: Apache-2.0
 * The beginnings of files that this program reads and writes. */
#include "cli/file_kind.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_sound(const unsigned char *at)
{
    static const char *const begins[] = {"RIFF", "RF64", "fLaC", "OggS", "ID3", "FORM", ".snd", "caff"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        if (memcmp(at, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    /* A frame of MPEG audio, or the container of phones. */
    return (at[0] == 0xff && (at[1] & 0xe0) == 0xe0) || memcmp(at + 4, "ftyp", 4) == 0;
}

static bool is_text(const unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((at[i] < ' ' && !memchr("\t\r\n", at[i], 3)) || at[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

enum file_kind file_kind(const char *path)
{
    unsigned char at[64] = {0};
    struct stat about;
    FILE *file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    size_t n = file ? fread(at, 1, sizeof at, file) : 0;
    if (file) {
        fclose(file);
    }
    return n == 0                                ? FILE_NONE
           : is_sound(at)                        ? FILE_SOUND
           : n > 8 && at[8] == '{' && at[7] == 0 ? FILE_TENSORS
           : is_text(at, n)                      ? FILE_TEXT
                                                 : FILE_OTHER;
}

const char *file_kind_text(enum file_kind kind)
{
    static const char *const texts[] = {
        "nothing", "a recording", "a voice or a model", "a text", "of another kind"};
    return texts[kind];
}
