/* SPDX-License-Identifier: Apache-2.0
 * The codes of an utterance, and the sound that the codec makes of them: 3_codes MODEL TEXT
 * Prints one line of codes a frame, then whether decoding them again gave the same samples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utter.h"

struct samples {
    float *at;
    size_t n;
};

static bool keep(void *user, const float *pcm, size_t n)
{
    struct samples *samples = user;
    float *grown = realloc(samples->at, (samples->n + n) * sizeof *grown);
    if (!grown) {
        return false;
    }
    memcpy(grown + samples->n, pcm, n * sizeof *pcm);
    samples->at = grown;
    samples->n += n;
    return true;
}

static utter_status speak(
    utter_stream *stream, const char *text, struct samples *spoken, utter_error *error)
{
    float pcm[1920];
    size_t n;
    utter_status status = utter_stream_text(stream, text, strlen(text), error);
    if (status == UTTER_OK) {
        status = utter_stream_finish(stream, error);
    }
    while (
        status == UTTER_OK && (status = utter_stream_read(stream, pcm, 1920, &n, error)) == UTTER_OK) {
        status = keep(spoken, pcm, n) ? UTTER_OK : UTTER_E_MEMORY;
    }
    return status == UTTER_END ? UTTER_OK : status;
}

/* Prints the codes of the stream and decodes them. The stream's lane is needed for that, so they are copied. */
static utter_status decode_again(
    utter_model *model, utter_stream **stream, struct samples *decoded, utter_error *error)
{
    utter_model_info info = {.size = sizeof info};
    utter_model_get_info(model, &info);
    size_t n_frames;
    const int32_t *borrowed = utter_stream_codes(*stream, &n_frames);
    size_t n = n_frames * (size_t)info.n_codebooks;
    int32_t *codes = malloc((n + 1) * sizeof *codes);
    if (!codes) {
        return UTTER_E_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        codes[i] = borrowed[i];
        printf("%d%c", codes[i], (i + 1) % (size_t)info.n_codebooks ? ' ' : '\n');
    }
    utter_stream_free(stream);
    utter_status status =
        utter_codec_decode(model, codes, n_frames, UTTER_CODEC_WHOLE, 0, keep, decoded, error);
    free(codes);
    return status;
}

int main(int n, char **arguments)
{
    utter_error error = {0};
    utter_model *model = NULL;
    utter_stream *stream = NULL;
    utter_stream_options options;
    struct samples spoken = {0}, decoded = {0};
    if (n != 3) {
        fprintf(stderr, "usage: %s MODEL TEXT\n", arguments[0]);
        return 1;
    }
    utter_status status = utter_model_open(&model, arguments[1], NULL, &error);
    if (status == UTTER_OK && (status = utter_stream_options_init(&options, model)) == UTTER_OK &&
        (status = utter_stream_open(&stream, model, &options, &error)) == UTTER_OK &&
        (status = speak(stream, arguments[2], &spoken, &error)) == UTTER_OK) {
        status = decode_again(model, &stream, &decoded, &error);
    }
    bool same = spoken.n == decoded.n &&
                (spoken.n == 0 || !memcmp(spoken.at, decoded.at, spoken.n * sizeof(float)));
    if (status == UTTER_OK) {
        printf("%zu samples, decoded again: %s\n", spoken.n, same ? "the same" : "different");
    } else {
        fprintf(stderr, "3_codes: %s\n", error.text[0] ? error.text : utter_status_text(status));
    }
    free(spoken.at);
    free(decoded.at);
    utter_stream_free(&stream);
    utter_model_close(&model);
    return status == UTTER_OK && same ? 0 : 1;
}
