/* SPDX-License-Identifier: Apache-2.0
 * Two utterances at once, their text arriving in pieces, as a voice agent does it: 2_stream MODEL
 * Writes first.wav and second.wav. */
#include <stdio.h>
#include <string.h>

#include "utter.h"

enum { N_STREAMS = 2 };

static const char *const texts[N_STREAMS] = {
    "The first voice speaks as soon as its first word is there.",
    "The second one shares every step with it.",
};

/* Moves the samples that are ready into the file. UTTER_END when the stream has given everything. */
static utter_status drain(utter_stream *stream, utter_sound *sound, utter_error *error)
{
    float pcm[1920];
    size_t n;
    utter_status status;
    while ((status = utter_stream_take(stream, pcm, 1920, &n, error)) == UTTER_OK) {
        if ((status = utter_sound_write(sound, pcm, n, error)) != UTTER_OK) {
            break;
        }
    }
    return status;
}

/* A few bytes of text for each stream, one step of the model for both, then what came out. */
static utter_status speak(
    utter_model *model, utter_stream **streams, utter_sound **sounds, utter_error *error)
{
    size_t given[N_STREAMS] = {0};
    bool finished[N_STREAMS] = {false}, ended[N_STREAMS] = {false};
    utter_status status = UTTER_OK;
    while (status >= 0 && !(ended[0] && ended[1])) {
        for (int i = 0; i < N_STREAMS && status >= 0; i++) {
            size_t left = strlen(texts[i]) - given[i];
            size_t piece = left < 5 ? left : 5;
            if (piece > 0) {
                status = utter_stream_text(streams[i], texts[i] + given[i], piece, error);
                given[i] += piece;
            } else if (!finished[i]) {
                status = utter_stream_finish(streams[i], error);
                finished[i] = true;
            }
        }
        if (status >= 0) {
            status = utter_model_step(model, error);
        }
        for (int i = 0; i < N_STREAMS && status >= 0; i++) {
            if (!ended[i] && (status = drain(streams[i], sounds[i], error)) == UTTER_END) {
                ended[i] = true;
            }
        }
    }
    return status < 0 ? status : UTTER_OK;
}

int main(int n, char **arguments)
{
    static const char *const names[N_STREAMS] = {"first.wav", "second.wav"};
    utter_error error = {0};
    utter_model *model = NULL;
    utter_stream *streams[N_STREAMS] = {NULL};
    utter_sound *sounds[N_STREAMS] = {NULL};
    if (n != 2) {
        fprintf(stderr, "usage: %s MODEL\n", arguments[0]);
        return 1;
    }
    utter_model_options lanes;
    utter_model_options_init(&lanes);
    lanes.n_lanes = N_STREAMS;
    utter_status status = utter_model_open(&model, arguments[1], &lanes, &error);
    for (int i = 0; i < N_STREAMS && status == UTTER_OK; i++) {
        utter_stream_options options;
        utter_stream_options_init(&options, model);
        options.layout = UTTER_LAYOUT_STREAM;
        options.seed = (uint64_t)i;
        status = utter_stream_open(&streams[i], model, &options, &error);
        if (status == UTTER_OK) {
            status = utter_sound_create(&sounds[i], names[i], NULL, UTTER_SAMPLE_S16, 24000, &error);
        }
    }
    if (status == UTTER_OK) {
        status = speak(model, streams, sounds, &error);
    }
    for (int i = 0; i < N_STREAMS; i++) {
        if (status == UTTER_OK) {
            status = utter_sound_close(&sounds[i], &error);
        }
        utter_sound_abort(&sounds[i]);
        utter_stream_free(&streams[i]);
    }
    utter_model_close(&model);
    if (status != UTTER_OK) {
        fprintf(stderr, "2_stream: %s\n", error.text);
        return 1;
    }
    return 0;
}
