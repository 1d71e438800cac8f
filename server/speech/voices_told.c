/* SPDX-License-Identifier: Apache-2.0
 * Files beside voices. */
#include "server/speech/voices_told.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "store/mirror.h"

enum { MAX_TOLD = 1 << 16, MAX_PATH = 4096, NAME_HASH = 16 /* digits of a name */ };
static const char ending[] = ".json";

/* The length of the voice's name without its ending. */
static int stem_length(const char *voice)
{
    return (int)(strlen(voice) - strlen(VOICE_ENDING));
}

/* Beside `voice`, for the bytes of the file `content`. */
static utter_status told_path(
    char *out, size_t size, const char *voice, const char *content, utter_error *error)
{
    char hash[MIRROR_HASH];
    uint64_t bytes;
    utter_status status = mirror_hash(hash, &bytes, content, error);
    if (status) {
        return status;
    }
    hash[NAME_HASH] = 0;
    int n = snprintf(out, size, "%.*s.%s%s", stem_length(voice), voice, hash, ending);
    return n < (int)size ? UTTER_OK : error_set(error, UTTER_E_FILE, "%s: the name is too long", voice);
}

static json_t *read_object(const char *path)
{
    json_t *told = NULL;
    if (json_file(&told, path, MAX_TOLD, JSON_SMALL, NULL) != UTTER_OK || !json_is_object(told)) {
        json_decref(told);
        told = NULL;
    }
    return told;
}

json_t *told_read(const char *voice)
{
    char path[MAX_PATH];
    json_t *told = NULL;
    if (told_path(path, sizeof path, voice, voice, NULL) == UTTER_OK) {
        told = read_object(path);
    }
    if (!told) {
        snprintf(path, sizeof path, "%.*s%s", stem_length(voice), voice, ending);
        told = read_object(path);
    }
    return told ? told : json_object();
}

/* Of the voice STEM: "STEM.json" and "STEM.HASH.json". */
static bool is_told(const char *name, const char *stem, size_t n)
{
    const size_t hash = 1 + NAME_HASH;
    if (strncmp(name, stem, n) != 0) {
        return false;
    }
    const char *rest = name + n;
    if (rest[0] == '.' && strspn(rest + 1, "0123456789abcdef") == hash - 1) {
        rest += hash;
    }
    return strcmp(rest, ending) == 0;
}

void told_sweep(const char *voice)
{
    char path[MAX_PATH], kept[MAX_PATH];
    const char *slash = strrchr(voice, '/'), *stem = slash ? slash + 1 : voice;
    const int folder = (int)(stem - voice);
    kept[0] = 0;
    if (file_exists(voice) && told_path(kept, sizeof kept, voice, voice, NULL) != UTTER_OK) {
        return; /* it is there and cannot be read now: whose the words are is not known */
    }
    snprintf(path, sizeof path, "%.*s", folder ? folder : 1, folder ? voice : ".");
    DIR *all = opendir(path);
    for (const struct dirent *file; all && (file = readdir(all));) {
        snprintf(path, sizeof path, "%.*s%s", folder, voice, file->d_name);
        if (is_told(file->d_name, stem, (size_t)stem_length(stem)) && strcmp(path, kept) != 0) {
            unlink(path);
        }
    }
    if (all) {
        closedir(all);
    }
}

/* An earlier server's words would be taken for those of the new voice. */
static bool has_old_words(const char *voice)
{
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%.*s%s", stem_length(voice), voice, ending);
    return file_exists(path);
}

/* A copy of the file `from`; NULL: no words. */
static utter_status put_words(const char *from, const char *to, utter_error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    struct file_out *out = NULL;
    utter_status status = from ? file_read(from, MAX_TOLD, &text, &bytes, error) : UTTER_OK;
    status = status ? status : file_out_open(&out, to, error);
    status = status ? status : file_out_write(out, text ? text : "{}", text ? bytes : 2, error);
    memory_free(text);
    if (status) {
        file_out_abort(&out);
        return status;
    }
    return file_out_close(&out, error);
}

utter_status told_save(const utter_voice *voice, const char *path, const char *told,
    const char *scratch, utter_error *error)
{
    char beside[MAX_PATH];
    utter_status status = utter_voice_save(voice, scratch, error);
    status = status ? status : told_path(beside, sizeof beside, path, scratch, error);
    if (status == UTTER_OK && (told || has_old_words(path))) {
        status = put_words(told, beside, error);
    } else if (status == UTTER_OK) { /* the same bytes may have been kept before, with words */
        unlink(beside);
        file_sync_entry(beside);
    }
    status = status ? status : utter_voice_save(voice, path, error);
    if (status == UTTER_OK) {
        told_sweep(path);
    }
    return status;
}
