/* SPDX-License-Identifier: Apache-2.0
 * Who speaks. A voice never changes after it is made; it is shared by counting. */
#ifndef VOICE_VOICE_H
#define VOICE_VOICE_H

#include "model/model.h"

struct utter_voice {
    int n_users; /* atomic */
    char *name;
    int preset; /* index into the config's voices */
};

/* A preset voice by name, any case. */
utter_status voice_new_preset(
    utter_voice **voice, const struct config *config, const char *name, utter_error *error);
utter_voice *voice_share(const utter_voice *voice);
void voice_free(utter_voice **voice); /* gives one share back; accepts NULL */

#endif
