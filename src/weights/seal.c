/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/seal.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bytes.h"
#include "base/file.h"

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

static uint64_t hash_around(const uint8_t *data, size_t bytes, size_t at)
{
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    XXH64_update(&state, data, at);
    XXH64_update(&state, SEAL_EMPTY, SEAL_DIGITS);
    XXH64_update(&state, data + at + SEAL_DIGITS, bytes - at - SEAL_DIGITS);
    return XXH64_digest(&state);
}

utter_status seal_check(const char *path, utter_error *error)
{
    struct file_map map;
    char digits[SEAL_DIGITS];
    utter_status status = file_map_open(&map, path, error);
    if (status) {
        return status;
    }
    struct bytes b = bytes_of(map.data, map.size);
    uint64_t header = bytes_number(&b, 8);
    size_t at = 0;
    if (!b.short_read && header <= bytes_left(&b)) {
        at = seal_find(map.data, 8 + (size_t)header);
    }
    if (at == 0) {
        status = error_set(error, UTTER_E_FILE, "%s: no sealed file, or damaged: its seal is missing", path);
    } else {
        seal_digits(digits, hash_around(map.data, map.size, at));
        if (memcmp(digits, map.data + at, SEAL_DIGITS) != 0 || file_map_damaged(&map)) {
            status = error_set(
                error, UTTER_E_FILE, "%s: damaged: its content does not match its seal", path);
        }
    }
    file_map_close(&map);
    return status;
}
