/* SPDX-License-Identifier: Apache-2.0
 * Speaks a text into a file: 1_say MODEL TEXT OUT.wav */
#include <stdio.h>

#include "utter.h"

static bool write_samples(void *user, const float *pcm, size_t n)
{
    return utter_sound_write(user, pcm, n, NULL) == UTTER_OK; /* false ends the speech */
}

int main(int n, char **arguments)
{
    utter_error error = {0};
    utter_model *model = NULL;
    utter_sound *sound = NULL;
    if (n != 4) {
        fprintf(stderr, "usage: %s MODEL TEXT OUT.wav\n", arguments[0]);
        return 1;
    }
    /* NULL options: the best device, one lane. Whatever fails says why in error.text. */
    if (utter_model_open(&model, arguments[1], NULL, &error) == UTTER_OK &&
        utter_sound_create(&sound, arguments[3], NULL, UTTER_SAMPLE_S16, 24000, &error) == UTTER_OK &&
        utter_say(model, arguments[2], NULL, write_samples, sound, &error) == UTTER_OK) {
        utter_sound_close(&sound, &error);
    }
    utter_sound_abort(&sound); /* nothing, once it is closed: no half file stays behind */
    utter_model_close(&model);
    if (error.code != UTTER_OK) {
        fprintf(stderr, "1_say: %s\n", error.text);
        return 1;
    }
    return 0;
}
