/* SPDX-License-Identifier: Apache-2.0
 * A program for the shared library: the voice that comes with it speaks into memory. Compiled against an earlier header
 * too, whose structs are shorter. */
#include <stdio.h>
#include <string.h>

#include "utter.h"

static bool sink(void *user, const float *pcm, size_t n)
{
    (void)pcm;
    *(size_t *)user += n;
    return true;
}

int main(void)
{
    utter_model *model = NULL;
    utter_error e = {0};
    utter_model_options options;
    size_t n = 0;
    /* A library with longer structs must not write behind those of this program. */
    struct {
        utter_model_info info;
        unsigned char guard[256];
    } room;
    memset(&room, 0xa5, sizeof room);
    room.info.size = sizeof room.info;
    utter_model_options_init(&options);
    options.size = sizeof options;
    options.device = "cpu";
    if (utter_model_open(&model, NULL, &options, &e) || utter_model_get_info(model, &room.info) ||
        utter_say(model, "Hello.", NULL, sink, &n, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    for (size_t i = 0; i < sizeof room.guard; i++) {
        if (room.guard[i] != 0xa5) {
            fprintf(stderr, "byte %zu behind the struct was written\n", i);
            return 1;
        }
    }
    printf("%zu samples at %d Hz\n", n, room.info.sample_rate);
    utter_model_close(&model);
    return n == 0;
}
