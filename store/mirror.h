/* SPDX-License-Identifier: Apache-2.0
 * A folder of this machine that has what a store has below a prefix: voices, which several servers share. It is read
 * like any folder, also while the store is away; what is in it came from there, and is there whole. */
#ifndef STORE_MIRROR_H
#define STORE_MIRROR_H

#include "base/error.h"

struct mirror;

/* s3://BUCKET[/PREFIX], named by `option`; the folder is made below `cache`. */
utter_status mirror_open(
    struct mirror **mirror, const char *url, const char *option, const char *cache, utter_error *error);
void mirror_close(struct mirror *mirror); /* accepts NULL */
const char *mirror_folder(const struct mirror *mirror);
/* NULL, or true ends what is waited for. To be set while nothing of the rest runs. */
void mirror_stop_by(struct mirror *mirror, bool (*stop)(void));

/* A file of the folder has changed, or has gone. */
typedef void mirror_changed_fn(void *user, const char *name);

/* What others have put there since comes into the folder, and what they have removed goes. What the store refuses, or
 * is too large for a voice, is left out: then UTTER_OK comes with a sentence in *error, which is empty otherwise. */
utter_status mirror_look(
    struct mirror *mirror, mirror_changed_fn *changed, void *user, utter_error *error);
/* STEM.voice of the folder `from`, with all STEM.*.json beside it, goes into the store, the voice last; and comes into
 * the mirror's folder from there, so that what was there before stays until it is in the store. */
utter_status mirror_put(struct mirror *mirror, const char *from, const char *stem, utter_error *error);
/* The same go, in the store and then here; the voice first. */
utter_status mirror_drop(struct mirror *mirror, const char *stem, utter_error *error);

/* The SHA-256 of a file in hexadecimal digits, and its size. */
enum { MIRROR_HASH = 65 };
utter_status mirror_hash(char hash[MIRROR_HASH], uint64_t *bytes, const char *path, utter_error *error);

#endif
