/* SPDX-License-Identifier: Apache-2.0
 * A model without weights: steps take their time from a table, a speech is as long as its text. Times are fitted to
 * rows of docs/log (server.md, gpu-many-lanes.md, gpu-frame-kernel.md, cpu-two-cores.md). */
#include "tests/sim/model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tests/sim/kernel.h"
#include "utter.h"

enum { PIECE_BYTES = 240, FRAME_MS = 80, BYTES_A_SECOND = 14 };

/* What a GPU takes for a prompt is nearly the same for a short text and for a long one: in 8 bits it is read in 1.2 ms
 * and 7 us a byte more, in bf16 in 1.2 ms and 1.2 us; there the rest is what else a first sound takes, by --predict. */
const struct model_shape model_shapes[MODEL_SHAPES] = {
    {"built-in voice, two cores", 24, {{1, 2.6}, {24, 58}}, 1.2, 0.06, 0.3},
    {"0.6B, two cores, slower than hearing", 24, {{1, 95}, {4, 330}, {24, 1900}}, 24, 1.2, 4},
    {"0.6B, H200, 8 bits: 8 fast lanes", 256,
        {{1, 1.3}, {4, 1.9}, {8, 2.2}, {9, 19}, {64, 26}, {256, 45}}, 1.2, 0.007, 1.7},
    {"0.6B, H200, bf16: 256 lanes", 256,
        {{1, 1.5}, {8, 3.6}, {32, 7.2}, {64, 10.2}, {128, 17}, {256, 31.1}}, 3.3, 0.0012, 1.7},
    {"0.6B, H200, 8 bits by graphs: 256 lanes", 256,
        {{1, 3.5}, {8, 5.8}, {32, 9.5}, {64, 13.5}, {128, 20.6}, {129, 27.5}, {256, 38}}, 1.2, 0.007,
        2},
    {"0.6B, H100, 8 bits by graphs: 145 lanes", 145,
        {{1, 3.5}, {4, 4.2}, {8, 5.8}, {32, 9}, {64, 12.8}, {128, 22}, {145, 28}}, 1.2, 0.007, 2},
};

struct model_plan model_plan;

struct utter_reading {
    utter_model *model;
    uint32_t id;
    bool known, over, held, failing;
    size_t n_bytes;
    char head[16];
    uint64_t seed;
    int max_frames;
    uint64_t made, taken; /* frames */
    double rows_left;     /* of the prompt of the piece that begins, in ms */
    uint64_t piece;       /* that is spoken */
    bool reads;           /* its prompt */
    utter_reading_stats stats;
};

enum { MOST_READINGS = 256 };

struct utter_model {
    int n_lanes;
    utter_reading *readings[MOST_READINGS];
    double prompt_ms; /* of a step */
};

static int n_open;

int model_open_speeches(void)
{
    return n_open;
}

/* ---- Texts and sound ---- */

void model_text(char *out, size_t size, uint32_t id, size_t bytes)
{
    static const char words[] =
        "the river in the morning was as quiet as an old garden beside a bridge, ";
    int n = snprintf(out, size, "@%u ", id);
    size_t at = (size_t)n, end = bytes < size - 1 ? bytes : size - 1;
    for (; at < end; at++) {
        out[at] = words[at % (sizeof words - 1)];
    }
    out[at > end ? at : end] = 0;
}

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 31) * 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

/* Frames of so much of a text. */
static uint64_t frames_of(uint32_t id, size_t bytes, int max_frames)
{
    double bytes_a_second = model_plan.bytes_a_second;
    if (bytes_a_second <= 0) {
        bytes_a_second = BYTES_A_SECOND / (0.8 + 0.4 * (double)(scramble(id) % 1000) / 1000);
    }
    uint64_t n = 1 + (uint64_t)((double)bytes * 1000 / FRAME_MS / bytes_a_second);
    return max_frames > 0 && n > (uint64_t)max_frames ? (uint64_t)max_frames : n;
}

uint64_t model_samples(uint32_t id, size_t text_bytes, int max_frames)
{
    return frames_of(id, text_bytes, max_frames) * (uint64_t)model_plan.frame_samples;
}

int16_t model_sample(uint32_t id, uint64_t at)
{
    return (int16_t)(id * 7919u + (uint32_t)at * 31u);
}

/* All speeches go round one circle of samples, each from a place of its own. It is made once, since this looks at each
 * sample that is spoken or heard. */
static struct {
    int16_t sound[(1 << 16) + MODEL_BLOCK];
    float pcm[(1 << 16) + MODEL_BLOCK];
} circle;

static size_t place_of(uint32_t id, uint64_t at)
{
    enum { BACK = 31711 }; /* times the step from one sample to the next it is 1, in 16 bits */
    if (circle.sound[1] == 0) {
        for (uint32_t i = 0; i < (1 << 16) + MODEL_BLOCK; i++) {
            circle.sound[i] = model_sample(0, i);
            circle.pcm[i] = (float)circle.sound[i] / 32768;
        }
    }
    return (uint16_t)((uint16_t)model_sample(id, at) * (uint32_t)BACK);
}

const int16_t *model_sound(uint32_t id, uint64_t at)
{
    return circle.sound + place_of(id, at);
}

const float *model_pcm(uint32_t id, uint64_t at)
{
    return circle.pcm + place_of(id, at);
}

static double share(uint32_t id, uint64_t salt)
{
    return (double)(scramble(id * 2654435761u + salt) % 1000000) * 1e-6;
}

static bool is_empty(uint32_t id)
{
    return share(id, 7) < model_plan.empty;
}

bool model_fails(uint32_t id)
{
    return is_empty(id) || share(id, 11) < model_plan.fails;
}

/* ---- The model ---- */

static double step_ms(const struct model_shape *s, int lanes)
{
    const struct model_point *p = s->points;
    while (p[1].lanes > 0 && p[1].lanes < lanes) {
        p++;
    }
    if (p[1].lanes == 0 || lanes <= p->lanes) {
        return p->ms * lanes / p->lanes;
    }
    return p->ms + (p[1].ms - p->ms) * (lanes - p->lanes) / (p[1].lanes - p->lanes);
}

double model_slowness(int lanes)
{
    const struct model_shape *s = model_plan.shape;
    return step_ms(s, lanes > 0 ? lanes : s->lanes) / FRAME_MS;
}

double model_most_throughput(const struct model_shape *shape)
{
    double most = 0;
    for (int n = 1; n <= shape->lanes; n++) {
        double speech_s = n * FRAME_MS / step_ms(shape, n);
        most = speech_s > most ? speech_s : most;
    }
    return most;
}

/* The processor is busy, or the GPU; false: the process has been killed meanwhile. */
static bool work(double ms)
{
    int64_t until = world_now_ns() + (int64_t)(1e6 * ms);
    while (world_now_ns() < until && !kernel_is_killed()) {
        task_wait_until(until);
    }
    return !kernel_is_killed();
}

void utter_model_options_init_sized(utter_model_options *options, size_t size)
{
    memset(options, 0, size);
    options->size = size;
}

utter_status utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error)
{
    (void)path;
    *model = NULL;
    work(model_plan.opens_for_ever ? 1e12 : 1e3 * model_plan.shape->open_s * draw_between(0.5, 2));
    if (kernel_is_killed() || draw_chance(model_plan.does_not_open)) {
        return error_set(error, UTTER_E_DEVICE, "the device is lost");
    }
    utter_model *m = memory_new(1, sizeof *m);
    if (!m) {
        return error_set(error, UTTER_E_MEMORY, "out of memory");
    }
    m->n_lanes = options->n_lanes > 0   ? options->n_lanes
                 : model_plan.lanes > 0 ? model_plan.lanes
                                        : model_plan.shape->lanes;
    m->prompt_ms = 1e3 * options->prompt_seconds;
    *model = m;
    return UTTER_OK;
}

void utter_model_close(utter_model **model)
{
    memory_free(*model);
    *model = NULL;
}

utter_status utter_model_get_info(const utter_model *model, utter_model_info *info)
{
    *info = (utter_model_info){.size = sizeof *info,
        .kind = UTTER_MODEL_CUSTOM_VOICE,
        .kind_name = "custom_voice",
        .size_name = "0b6",
        .device = model_plan.shape->lanes == 24 ? "cpu" : "cuda",
        .kernels = "simulated",
        .weights = "none",
        .sample_rate = model_plan.sample_rate,
        .frame_samples = model_plan.frame_samples,
        .n_threads = 2,
        .n_lanes = model->n_lanes,
        .n_voices = 1,
        .n_languages = 1,
        .width = 1024,
        .memory_bytes = 1 << 20};
    return UTTER_OK;
}

const char *utter_model_voice_name(const utter_model *model, int index)
{
    (void)model;
    return index == 0 ? "clara" : NULL;
}

const char *utter_model_language_name(const utter_model *model, int index)
{
    (void)model;
    return index == 0 ? "english" : NULL;
}

/* ---- Readings ---- */

utter_status utter_stream_options_init_sized(
    utter_stream_options *options, size_t size, const utter_model *model)
{
    (void)model;
    memset(options, 0, size);
    return UTTER_OK;
}

void utter_reading_options_init_sized(utter_reading_options *options, size_t size)
{
    memset(options, 0, size);
    options->live = true;
}

utter_status utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error)
{
    int i = 0;
    *reading = NULL;
    while (i < model->n_lanes && model->readings[i]) {
        i++;
    }
    if (i == model->n_lanes) {
        return error_set(error, UTTER_AGAIN, "all lanes are taken");
    }
    utter_reading *r = memory_new(1, sizeof *r);
    if (!r) {
        return error_set(error, UTTER_E_MEMORY, "out of memory");
    }
    r->model = model;
    r->seed = voice->seed;
    r->max_frames = options->max_frames;
    r->reads = true;
    *reading = model->readings[i] = r;
    n_open++;
    return UTTER_OK;
}

void utter_reading_free(utter_reading **reading)
{
    utter_reading *r = *reading;
    *reading = NULL;
    if (!r) {
        return;
    }
    for (int i = 0; i < r->model->n_lanes; i++) {
        r->model->readings[i] = r->model->readings[i] == r ? NULL : r->model->readings[i];
    }
    memory_free(r);
    n_open--;
}

static size_t piece_bytes(const utter_reading *r)
{
    size_t from = (size_t)r->piece * PIECE_BYTES, n = r->n_bytes > from ? r->n_bytes - from : 0;
    return n < PIECE_BYTES ? n : PIECE_BYTES;
}

/* Text that has come while none of the piece's prompt is read is a part of it. */
static void cut_piece(utter_reading *r)
{
    if (r->reads && r->rows_left <= 0) {
        r->stats.at = r->piece * PIECE_BYTES;
        r->stats.bytes = piece_bytes(r);
    }
}

utter_status utter_reading_text(utter_reading *r, const char *text, size_t n, utter_error *error)
{
    (void)error;
    for (size_t i = 0; i < n && r->n_bytes + i < sizeof r->head - 1; i++) {
        r->head[r->n_bytes + i] = text[i];
    }
    r->n_bytes += n;
    cut_piece(r);
    if (!r->known && strchr(r->head, ' ')) {
        r->known = true;
        r->id = (uint32_t)strtoul(r->head + (r->head[0] == '@'), NULL, 10);
        r->failing = share(r->id, 11) < model_plan.fails;
    }
    return UTTER_OK;
}

utter_status utter_reading_finish(utter_reading *r, utter_error *error)
{
    (void)error;
    r->known = r->over = true;
    return UTTER_OK;
}

void utter_reading_hold(utter_reading *r, bool held)
{
    if (r) {
        r->held = held;
    }
}

static uint64_t frames_now(const utter_reading *r)
{
    return !r->known || is_empty(r->id) ? 0 : frames_of(r->id, r->n_bytes, r->max_frames) - !r->over;
}

static bool can_move(const utter_reading *r)
{
    return r && !r->held && r->made < frames_now(r);
}

/* Reads of its prompt what a step may read; 0: it was read before. */
static double read_prompt(utter_reading *r, double most_ms)
{
    if (!r->reads) {
        return 0;
    }
    if (r->rows_left <= 0) {
        r->rows_left = model_plan.shape->prompt_ms + model_plan.shape->byte_ms * (double)r->stats.bytes;
    }
    double ms = most_ms > 0 && r->rows_left > most_ms ? most_ms : r->rows_left;
    r->rows_left -= ms;
    r->reads = r->rows_left > 1e-9;
    r->stats.n_rows++;
    r->stats.prefill_s += 1e-3 * ms;
    return ms;
}

static void make_frame(utter_reading *r)
{
    r->made++;
    r->stats.n_frames++;
    uint64_t border = frames_of(r->id, (size_t)(r->piece + 1) * PIECE_BYTES, 0);
    if (r->made >= border || (r->over && r->made == frames_now(r))) {
        r->stats.n_pieces++;
        r->piece++;
        r->reads = true;
        cut_piece(r);
    }
}

utter_status utter_model_step(utter_model *model, utter_error *error)
{
    double ms = 0;
    int n_frames = 0, n_moved = 0;
    for (int i = 0; i < model->n_lanes; i++) {
        utter_reading *r = model->readings[i];
        if (can_move(r)) {
            ms += read_prompt(r, model->prompt_ms);
            n_moved++;
            if (!r->reads) {
                make_frame(r);
                n_frames++;
            }
        }
    }
    if (n_moved == 0) {
        return UTTER_AGAIN;
    }
    ms += n_frames ? step_ms(model_plan.shape, n_frames) : 0;
    ms *= 1 + model_plan.unsteady * (draw_chance(0.01) ? 3 * draw_unit() : draw_unit() - 0.5);
    if (!work(ms) || draw_chance(model_plan.breaks)) {
        return error_set(error, UTTER_E_DEVICE, "the device is lost");
    }
    return UTTER_OK;
}

utter_status utter_reading_take(
    utter_reading *r, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    *n = 0;
    if (r->taken < r->made) {
        assert(capacity <= MODEL_BLOCK);
        memcpy(pcm, model_pcm(r->id, r->taken * capacity), capacity * sizeof *pcm);
        *n = capacity;
        r->taken++;
        return UTTER_OK;
    }
    if (r->failing && r->made > share(r->id, 13) * 40) {
        return error_set(error, UTTER_E_INTERNAL, "the model has made what is no number");
    }
    return r->over && r->made >= frames_now(r) ? UTTER_END : UTTER_AGAIN;
}

utter_status utter_reading_get_stats(const utter_reading *r, utter_reading_stats *stats)
{
    *stats = r->stats;
    bool cut = r->max_frames > 0 && r->made >= (uint64_t)r->max_frames;
    stats->finish = cut ? UTTER_FINISH_MAX_FRAMES : UTTER_FINISH_EOS;
    stats->n_text_tokens = r->n_bytes / 4;
    return UTTER_OK;
}

const utter_word *utter_reading_words(utter_reading *r, uint64_t *first, size_t *n)
{
    (void)r;
    *first = *n = 0;
    return NULL;
}

/* ---- What else the server asks of the library ---- */

utter_status utter_voice_preset(
    utter_voice **voice, const utter_model *model, const char *name, utter_error *error)
{
    (void)model, (void)name, (void)error;
    *voice = NULL;
    return UTTER_OK;
}

void utter_voice_free(utter_voice **voice)
{
    *voice = NULL;
}

const char *utter_version_text(void)
{
    return "0";
}

const char *utter_finish_text(utter_finish finish)
{
    return finish == UTTER_FINISH_EOS ? "eos" : "other";
}

/* Only the maker of voices calls these. */
__attribute__((used)) static void nobody_comes_here(void)
{
    world_fail("a call that nobody makes");
}
#define ABSENT(name) __asm__(".globl " #name "\n.set " #name ", nobody_comes_here")
ABSENT(utter_clone_options_init_sized);
ABSENT(utter_voice_clone);
ABSENT(utter_voice_get_info);
ABSENT(utter_voice_load);
ABSENT(utter_voice_save);
