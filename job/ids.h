/* SPDX-License-Identifier: Apache-2.0
 * Whether an id comes twice in a manifest of any length: hashes of ids go to files without a name, in parts that are
 * looked through one at a time, so that ten million take a few megabytes of memory. */
#ifndef JOB_IDS_H
#define JOB_IDS_H

#include "base/error.h"

struct ids;

utter_status ids_new(struct ids **ids, utter_error *error);
utter_status ids_add(struct ids *ids, const char *id, uint64_t line, utter_error *error);
/* UTTER_OK, or UTTER_E_ARGUMENT with two lines that have one id. */
utter_status ids_check(struct ids *ids, utter_error *error);
void ids_free(struct ids *ids); /* accepts NULL */

#endif
