/* SPDX-License-Identifier: Apache-2.0
 * Speaks a text into a file: 1_say MODEL TEXT OUT.wav */
#include <stdio.h>

#include "utter.h"

struct output {
    utter_sound *sound;
    utter_error error; /* why a sample could not be written */
};

static bool write_samples(void *user, const float *pcm, size_t n)
{
    struct output *o = user;
    return utter_sound_write(o->sound, pcm, n, &o->error) == UTTER_OK; /* false ends the speech */
}

int main(int n, char **arguments)
{
    utter_error error = {0};
    utter_model *model = NULL;
    struct output o = {0};
    if (n != 4) {
        fprintf(stderr, "usage: %s MODEL TEXT OUT.wav\n", arguments[0]);
        return 1;
    }
    /* NULL options: the best device, one lane. Whatever fails says why in error.text. */
    if (utter_model_open(&model, arguments[1], NULL, &error) == UTTER_OK &&
        utter_sound_create(&o.sound, arguments[3], NULL, UTTER_SAMPLE_S16, 24000, &error) == UTTER_OK &&
        utter_say(model, arguments[2], NULL, write_samples, &o, &error) == UTTER_OK) {
        utter_sound_close(&o.sound, &error);
    }
    utter_sound_abort(&o.sound); /* nothing, once it is closed: no half file stays behind */
    utter_model_close(&model);
    if (error.code != UTTER_OK) {
        fprintf(stderr, "1_say: %s\n", o.error.code ? o.error.text : error.text);
        return 1;
    }
    return 0;
}
