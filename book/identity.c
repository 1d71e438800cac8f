/* SPDX-License-Identifier: Apache-2.0
 * nettle's SHA-256. */
#include "book/identity.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

static void finish(struct sha256_ctx *sha, char hex[IDENTITY_SIZE])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(sha, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }
}

static void add_text(struct sha256_ctx *sha, const char *text)
{
    uint64_t n = strlen(text);
    sha256_update(sha, sizeof n, (const uint8_t *)&n);
    sha256_update(sha, (size_t)n, (const uint8_t *)text);
}

void identity_of_texts(char hex[IDENTITY_SIZE], const char *const *texts)
{
    struct sha256_ctx sha;
    sha256_init(&sha);
    while (*texts) {
        add_text(&sha, *texts++);
    }
    finish(&sha, hex);
}

void identity_of_bytes(char hex[IDENTITY_SIZE], const void *bytes, size_t n)
{
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, n, bytes);
    finish(&sha, hex);
}

/* A block of `block` bytes at each `step`, and the last one; step 0: all. */
static utter_status add_file(
    struct sha256_ctx *sha, const char *path, size_t block, size_t step, utter_error *error)
{
    struct file_map map = {0};
    utter_status status = file_map_open(&map, path, error);
    if (status) {
        return status;
    }
    uint64_t size = map.size;
    sha256_update(sha, sizeof size, (const uint8_t *)&size);
    if (step == 0 || map.size <= 2 * block) {
        sha256_update(sha, map.size, map.data);
    } else {
        for (size_t at = 0; at + block <= map.size; at += step) {
            sha256_update(sha, block, map.data + at);
        }
        sha256_update(sha, block, map.data + map.size - block);
    }
    file_map_close(&map);
    return UTTER_OK;
}

utter_status identity_of_file(char hex[IDENTITY_SIZE], const char *path, utter_error *error)
{
    struct sha256_ctx sha;
    sha256_init(&sha);
    utter_status status = add_file(&sha, path, 0, 0, error);
    finish(&sha, hex);
    return status;
}

/* Of a large file, what is hashed: a block at each step. */
enum { BLOCK = 1 << 16, STEP = 1 << 24 };

static utter_status add_folder(
    struct sha256_ctx *sha, const char *folder, bool inside, utter_error *error)
{
    struct dirent **names;
    int n = scandir(folder, &names, NULL, alphasort);
    utter_status status = n < 0 ? file_error(error, folder, "read", errno) : UTTER_OK;
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];
        struct stat about;
        if (status == UTTER_OK && names[i]->d_name[0] != '.' &&
            (status = file_join(path, sizeof path, folder, names[i]->d_name, error)) == UTTER_OK &&
            stat(path, &about) == 0) {
            add_text(sha, names[i]->d_name);
            status = S_ISREG(about.st_mode)              ? add_file(sha, path, BLOCK, STEP, error)
                     : S_ISDIR(about.st_mode) && !inside ? add_folder(sha, path, true, error)
                                                         : UTTER_OK;
        }
        free(names[i]);
    }
    if (n >= 0) {
        free(names);
    }
    return status;
}

utter_status identity_of_model(char hex[IDENTITY_SIZE], const char *path, utter_error *error)
{
    struct sha256_ctx sha;
    sha256_init(&sha);
    utter_status status = file_is_folder(path) ? add_folder(&sha, path, false, error)
                                               : add_file(&sha, path, BLOCK, STEP, error);
    finish(&sha, hex);
    return status;
}
