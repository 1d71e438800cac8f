/* SPDX-License-Identifier: Apache-2.0
 * Limits of a key: speeches at once, and requests a minute as a bucket that fills evenly. */
#include "server/loop/account.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

_Static_assert(ACCOUNT_DIGEST == SHA256_DIGEST_SIZE, "a digest is that of SHA-256");

void account_digest(uint8_t digest[ACCOUNT_DIGEST], const char *key, size_t n)
{
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, n, (const uint8_t *)key);
    sha256_digest(&sha, ACCOUNT_DIGEST, digest);
}

void account_mark(char mark[ACCOUNT_MARK], const struct account *account)
{
    uint8_t again[ACCOUNT_DIGEST];
    account_digest(again, (const char *)account->digest, sizeof account->digest);
    for (int i = 0; i < ACCOUNT_MARK / 2; i++) {
        snprintf(mark + (size_t)2 * (size_t)i, 3, "%02x", again[i]);
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool from_hex(uint8_t digest[ACCOUNT_DIGEST], const char *hex, size_t n)
{
    for (size_t i = 0; n == 2 * ACCOUNT_DIGEST && i < n; i += 2) {
        int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        digest[i / 2] = (uint8_t)(high << 4 | low);
    }
    return n == 2 * ACCOUNT_DIGEST;
}

/* "NAME=N" with N of 1 .. ACCOUNT_MOST. */
static bool take_limit(int *limit, const char *name, const char *word, size_t n)
{
    size_t length = strlen(name);
    int value = 0;
    if (n <= length || memcmp(word, name, length) != 0 || *limit != 0) {
        return false;
    }
    for (size_t i = length; i < n; i++) {
        if (word[i] < '0' || word[i] > '9' || value > ACCOUNT_MOST / 10) {
            return false;
        }
        value = value * 10 + (word[i] - '0');
    }
    *limit = value;
    return value >= 1 && value <= ACCOUNT_MOST;
}

static bool take_word(bool *is, const char *name, const char *word, size_t n)
{
    *is = *is || (n == strlen(name) && memcmp(word, name, n) == 0);
    return *is && n == strlen(name) && memcmp(word, name, n) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static size_t word_bytes(const char *at, const char *end)
{
    const char *stop = at;
    while (stop < end && !is_blank(*stop)) {
        stop++;
    }
    return (size_t)(stop - at);
}

enum account_line account_parse(struct account *account, const char *line, size_t n)
{
    static const char hashed[] = "sha256:";
    const char *end = line + n;
    bool has_key = false;
    *account = (struct account){.n_holders = 1};
    for (size_t bytes; line < end; line += bytes) {
        bytes = word_bytes(line, end);
        if (bytes == 0) {
            bytes = 1; /* a blank */
            continue;
        }
        bool good = true;
        if (!has_key && *line == '#') {
            return ACCOUNT_LINE_EMPTY;
        }
        if (*line == '#') {
            break;
        }
        if (!has_key && bytes > strlen(hashed) && memcmp(line, hashed, strlen(hashed)) == 0) {
            good = from_hex(account->digest, line + strlen(hashed), bytes - strlen(hashed));
        } else if (!has_key) {
            account_digest(account->digest, line, bytes);
        } else {
            good = take_limit(&account->most_speeches, "speeches=", line, bytes) ||
                   take_limit(&account->per_minute, "per-minute=", line, bytes) ||
                   take_word(&account->is_operator, "operator", line, bytes);
        }
        if (!good) {
            return ACCOUNT_LINE_BAD;
        }
        has_key = true;
    }
    account->allowance = account->per_minute;
    return has_key ? ACCOUNT_LINE_KEY : ACCOUNT_LINE_EMPTY;
}

static double allowance(const struct account *a, double now)
{
    double filled = a->allowance + (now - a->counted_at) * a->per_minute / 60;
    return min(filled, a->per_minute);
}

bool account_admit(const struct account *a, double now, struct refusal *r)
{
    if (a->most_speeches > 0 && a->n_speeches >= a->most_speeches) {
        refuse(r, 429, NULL, "this key may have %d speeches at once (wait for one to end)",
            a->most_speeches);
        r->retry_ms = 1000;
    } else if (a->per_minute > 0 && allowance(a, now) < 1) {
        refuse(r, 429, NULL, "this key may ask for %d speeches a minute", a->per_minute);
        r->retry_ms = (int)((1 - allowance(a, now)) * 60000 / a->per_minute) + 1;
    } else {
        return true;
    }
    r->code = "rate_limit_exceeded";
    return false;
}

void account_count(struct account *a, double now)
{
    a->allowance = allowance(a, now) - 1;
    a->counted_at = now;
    a->n_speeches++;
}

struct account *account_share(struct account *a)
{
    if (a) {
        a->n_holders++;
    }
    return a;
}

void account_free(struct account **at)
{
    struct account *a = *at;
    *at = NULL;
    if (a && --a->n_holders == 0) {
        memory_free(a);
    }
}
