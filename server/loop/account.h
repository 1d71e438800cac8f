/* SPDX-License-Identifier: Apache-2.0
 * One line of the key file: a key as its hash, its limits, and what it has used of them. Pure but for memory. */
#ifndef SERVER_ACCOUNT_H
#define SERVER_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/protocol/refusal.h"

enum { ACCOUNT_DIGEST = 32, ACCOUNT_MOST = 100000, ACCOUNT_MARK = 17 };

/* Counted: the list of keys, connections and speeches hold it. */
struct account {
    uint8_t digest[ACCOUNT_DIGEST]; /* SHA-256 of the key */
    int most_speeches, per_minute;  /* 0: no limit */
    bool is_operator;               /* may send workers away */
    int n_speeches;                 /* queued or on lanes */
    double allowance,
        counted_at; /* requests that may come at once, as of that time; at most per_minute */
    int n_holders;
};

enum account_line { ACCOUNT_LINE_EMPTY, ACCOUNT_LINE_KEY, ACCOUNT_LINE_BAD };

/* "KEY" or "sha256:HEX", then any of " speeches=N", " per-minute=N" and " operator"; # begins a comment. Fills in what
 * *account has of it. */
enum account_line account_parse(struct account *account, const char *line, size_t n);
void account_digest(uint8_t digest[ACCOUNT_DIGEST], const char *key, size_t n);

/* What stands on disk for whose something is: a hash of the key's hash. */
void account_mark(char mark[ACCOUNT_MARK], const struct account *account);

/* Whether one more speech may be asked for; otherwise 429 and when it may. */
bool account_admit(const struct account *account, double now, struct refusal *refusal);
/* One more is asked for. */
void account_count(struct account *account, double now);

struct account *account_share(struct account *account); /* accepts NULL */
void account_free(struct account **account);            /* one holder less; NULL afterwards */

#endif
