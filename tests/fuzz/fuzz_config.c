/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as the configs of a model: config.json, generation_config.json and the codec's, with a line "--" between
 * them. What does not begin with a brace is a model in one file that has them as members. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/took.h"
#include "weights/checkpoint.h"
#include "weights/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct {
    const uint8_t *data;
    size_t bytes;
} input;

/* Where the n-th text of the input begins, and how long it is. */
static const uint8_t *find_text(int n, size_t *bytes)
{
    const uint8_t *at = input.data, *end = input.data + input.bytes;
    for (int i = 0;; i++) {
        const uint8_t *line = i < 2 ? memmem(at, (size_t)(end - at), "\n--\n", 4) : NULL;
        const uint8_t *to = line ? line : end;
        if (i == n) {
            *bytes = (size_t)(to - at);
            return at;
        }
        at = line ? line + 4 : end;
    }
}

/* These take the place of what finds and reads the files of a checkpoint (--wrap): through a file and its header they
 * would come four times as slowly, and no other code would be reached. */
bool __wrap_checkpoint_exists(const char *path);
bool __real_checkpoint_exists(const char *path);
utter_status __wrap_checkpoint_json(
    json_t **root, const char *path, size_t limit, size_t most_values, utter_error *error);
utter_status __real_checkpoint_json(
    json_t **root, const char *path, size_t limit, size_t most_values, utter_error *error);

static bool is_text(void)
{
    return input.bytes > 0 && input.data[0] == '{';
}

bool __wrap_checkpoint_exists(const char *path)
{
    return is_text() || __real_checkpoint_exists(path);
}

utter_status __wrap_checkpoint_json(
    json_t **root, const char *path, size_t limit, size_t most_values, utter_error *error)
{
    if (!is_text()) {
        return __real_checkpoint_json(root, path, limit, most_values, error);
    }
    int n = strstr(path, "/speech_tokenizer/") ? 2 : strstr(path, "/generation_config.json") ? 1 : 0;
    size_t bytes;
    const char *text = (const char *)find_text(n, &bytes);
    return json_text(root, text, bytes, most_values, path, error);
}

static bool is_stack(const struct stack_config *s)
{
    return s->width > 1 && s->inner > 0 && s->n_layers > 0 && s->head > 1 && s->head % 2 == 0 &&
           s->n_kv_heads > 0 && s->n_heads % s->n_kv_heads == 0 && s->norm_eps > 0;
}

static void check(const struct config *c)
{
    bool good = is_stack(&c->talker) && is_stack(&c->predictor) && is_stack(&c->codec.stack) &&
                c->n_codebooks == c->codec.n_codebooks && c->codec.frame_samples > 0 &&
                c->codec_eos < c->codec_vocabulary && c->tts_eos < c->text_vocabulary;
    for (int i = 0; i < c->n_voices; i++) {
        good = good && c->voices[i].id >= 0 && c->voices[i].id < c->codec_vocabulary &&
               config_find(c->voices, c->n_voices, c->voices[i].name) >= 0;
    }
    if (!good) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64];
    utter_error error = {.text = ""};
    struct config *config = NULL;
    input.data = data;
    input.bytes = bytes;
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes) {
        exit(1);
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    utter_status status = config_open(&config, path, &error);
    if ((status == UTTER_OK) != (config != NULL) ||
        (status != UTTER_OK && (!error.text[0] || strchr(error.text, '\n')))) {
        abort();
    }
    if (config) {
        check(config);
        replay_takes();
    }
    config_close(&config);
    close(fd);
    return 0;
}
