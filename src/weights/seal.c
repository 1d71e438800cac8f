/* SPDX-License-Identifier: Apache-2.0
 * Hashes a safetensors file around its seal, and compares. */
#include "weights/seal.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/minmax.h"

size_t seal_find(const void *file, size_t bytes)
{
    static const char field[] = "\"" SEAL_KEY "\":\"";
    const char *at = memmem(file, bytes, field, sizeof field - 1);
    size_t from = at ? (size_t)(at - (const char *)file) + sizeof field - 1 : 0;
    return at && bytes - from > SEAL_DIGITS ? from : 0;
}

void seal_digits(char *digits, uint64_t hash)
{
    for (int i = 0; i < SEAL_DIGITS; i++) {
        digits[i] = "0123456789abcdef"[hash >> (4 * (SEAL_DIGITS - 1 - i)) & 15];
    }
}

/* In pieces, whose memory is given back: a file may be larger than what its reader wants to take. */
static uint64_t hash_around(const struct file_map *map, size_t at)
{
    enum { PIECE = 16 << 20 };
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    XXH64_update(&state, map->data, at);
    XXH64_update(&state, SEAL_EMPTY, SEAL_DIGITS);
    for (size_t i = at + SEAL_DIGITS; i < map->size; i += PIECE) {
        size_t n = min(map->size - i, PIECE);
        XXH64_update(&state, map->data + i, n);
        file_map_rest(map, map->data + i, n);
    }
    return XXH64_digest(&state);
}

utter_status seal_check_map(const struct file_map *map, const char *path, utter_error *error)
{
    char digits[SEAL_DIGITS];
    struct bytes b = bytes_of(map->data, map->size);
    uint64_t header = bytes_number(&b, 8);
    size_t at = 0;
    if (!b.short_read && header <= bytes_left(&b)) {
        at = seal_find(map->data, 8 + (size_t)header);
    }
    if (at == 0) {
        return error_set(
            error, UTTER_E_FILE, "%s: no sealed file, or damaged: its seal is missing", path);
    }
    seal_digits(digits, hash_around(map, at));
    if (memcmp(digits, map->data + at, SEAL_DIGITS) != 0 || file_map_damaged(map)) {
        return error_set(error, UTTER_E_FILE, "%s: damaged: its content does not match its seal", path);
    }
    return UTTER_OK;
}

utter_status seal_check(const char *path, utter_error *error)
{
    struct file_map map;
    utter_status status = file_map_open(&map, path, error);
    if (status == UTTER_OK) {
        status = seal_check_map(&map, path, error);
    }
    file_map_close(&map);
    return status;
}
