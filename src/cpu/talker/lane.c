/* SPDX-License-Identifier: Apache-2.0
 * The life of a lane: memory, reset, the history of its codes. */
#include "cpu/talker/lane.h"

#include <string.h>

#include "base/memory.h"

/* Positions whose memory stays for the next utterance. What a longer one took behind them goes back to the system at
 * reset: else each lane would come to keep what the longest that it ever said took. */
enum { KEEP_POSITIONS = 512 };

/* Values of keys, or of values, of one position. */
static size_t position_values(const struct stack_config *shape)
{
    return (size_t)shape->n_layers * (size_t)shape->n_kv_heads * (size_t)shape->head;
}

uint64_t cpu_lane_position_bytes(const struct config *config)
{
    return 2 * position_values(&config->talker) * sizeof(float);
}

uint64_t cpu_lane_fixed_bytes(const struct config *config)
{
    size_t n_codebooks = (size_t)config->n_codebooks, vocabulary = (size_t)config->codec_vocabulary;
    return 2 * n_codebooks * position_values(&config->predictor) * sizeof(float) +
           (size_t)config->talker.width * sizeof(float) + vocabulary * (sizeof(float) + 1) +
           (2 * BACKEND_MAX_FEED + 1) * n_codebooks * sizeof(int32_t) +
           BACKEND_MAX_FEED * (size_t)config->codec.frame_samples * sizeof(float);
}

utter_status cpu_lane_init(struct cpu_lane *lane, const struct model *model,
    const struct cpu_vocoder *vocoder, int n_positions, utter_error *error)
{
    const struct config *c = model->config;
    size_t n_codebooks = (size_t)c->n_codebooks, vocabulary = (size_t)c->codec_vocabulary, bytes;
    lane->talker.capacity = n_positions;
    lane->predictor.capacity = c->n_codebooks;
    if (!memory_multiply((size_t)n_positions, position_values(&c->talker) * sizeof(float), &bytes)) {
        return error_memory(error, "the talker's cache");
    }
    lane->talker.keys = memory_reserve(bytes);
    lane->talker.values = memory_reserve(bytes);
    lane->predictor.keys = memory_new(n_codebooks, position_values(&c->predictor) * sizeof(float));
    lane->predictor.values = memory_new(n_codebooks, position_values(&c->predictor) * sizeof(float));
    lane->hidden = memory_new((size_t)c->talker.width, sizeof(float));
    lane->logits = memory_new(vocabulary, sizeof(float));
    lane->seen = memory_new(vocabulary, 1);
    lane->taken = memory_new(n_codebooks, sizeof(int32_t));
    lane->codes = memory_new(BACKEND_MAX_FEED * n_codebooks, sizeof(int32_t));
    lane->spoken = memory_new(BACKEND_MAX_FEED * n_codebooks, sizeof(int32_t));
    lane->pcm = memory_new(BACKEND_MAX_FEED * (size_t)c->codec.frame_samples, sizeof(float));
    lane->vocoder = cpu_vocoder_lane_new(vocoder);
    if (!lane->talker.keys || !lane->talker.values || !lane->predictor.keys ||
        !lane->predictor.values || !lane->hidden || !lane->logits || !lane->seen || !lane->taken ||
        !lane->codes || !lane->spoken || !lane->pcm || !lane->vocoder) {
        return error_memory(error, "a lane");
    }
    return UTTER_OK;
}

void cpu_lane_fini(struct cpu_lane *lane, const struct model *model)
{
    size_t bytes =
        (size_t)lane->talker.capacity * position_values(&model->config->talker) * sizeof(float);
    memory_release(lane->talker.keys, bytes);
    memory_release(lane->talker.values, bytes);
    memory_free(lane->predictor.keys);
    memory_free(lane->predictor.values);
    memory_free(lane->hidden);
    memory_free(lane->logits);
    memory_free(lane->seen);
    memory_free(lane->taken);
    memory_free(lane->codes);
    memory_free(lane->spoken);
    memory_free(lane->pcm);
    memory_free(lane->look.scores);
    cpu_vocoder_lane_free(lane->vocoder);
    *lane = (struct cpu_lane){0};
}

/* A cache is [n_layers][capacity][values of a position in a layer]. */
static void rest_behind_kept(float *cache, int64_t capacity, const struct stack_config *shape)
{
    const int64_t one = (int64_t)shape->n_kv_heads * shape->head;
    for (int i = 0; i < shape->n_layers; i++) {
        memory_rest(cache + (i * capacity + KEEP_POSITIONS) * one,
            (size_t)((capacity - KEEP_POSITIONS) * one) * sizeof *cache);
    }
}

void cpu_lane_reset(struct cpu_lane *lane, const struct model *model, const struct cpu_vocoder *vocoder,
    const struct lane_settings *settings)
{
    if (lane->position > KEEP_POSITIONS) {
        rest_behind_kept(lane->talker.keys, lane->talker.capacity, &model->config->talker);
        rest_behind_kept(lane->talker.values, lane->talker.capacity, &model->config->talker);
    }
    lane->settings = *settings;
    lane->position = 0;
    lane->ready = false;
    lane->n_frames = 0;
    lane->n_waiting = 0;
    lane->out = (struct lane_out){0};
    lane->look.begin = lane->look.end = 0;
    memset(lane->seen, 0, (size_t)model->config->codec_vocabulary);
    cpu_vocoder_lane_reset(vocoder, lane->vocoder);
}

utter_status cpu_lane_look(struct cpu_lane *lane, const struct talker_head *heads, int n_heads,
    int begin, int end, utter_error *error)
{
    size_t n = (size_t)n_heads * (size_t)(end - begin);
    if (n > lane->look_room) {
        memory_free(lane->look.scores);
        lane->look.scores = memory_new(n, sizeof *lane->look.scores);
        lane->look_room = lane->look.scores ? n : 0;
        if (!lane->look.scores) {
            lane->look.begin = lane->look.end = 0;
            return error_memory(error, "scores of watched heads");
        }
    }
    lane->look.heads = heads;
    lane->look.n_heads = n_heads;
    lane->look.begin = begin;
    lane->look.end = end;
    return UTTER_OK;
}

void cpu_lane_note_code(struct cpu_lane *lane, int32_t code)
{
    lane->seen[code] = 1;
}
