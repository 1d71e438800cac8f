/* SPDX-License-Identifier: Apache-2.0
 * `utter verify`: runs what a golden file holds on a model and reports how each stage agrees. Ids and codes must be
 * equal; activations and samples may differ by what fp32 rounding alone does (docs/verify.md gives the limits
 * and where they come from, and what the official samples in fp64 are for). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/golden.h"
#include "base/memory.h"
#include "base/minmax.h"

enum stage {
    STAGE_FILES,
    STAGE_IDS,
    STAGE_PROMPT,
    STAGE_LAYERS,
    STAGE_HIDDEN,
    STAGE_LOGITS,
    STAGE_SUB_LOGITS,
    STAGE_CODES,
    STAGE_FINISH,
    STAGE_STREAMED,
    STAGE_SAMPLES_MAX,
    STAGE_SAMPLES_RMS,
    STAGE_FP64_MAX, /* in the order of the two before */
    STAGE_FP64_RMS,
    N_STAGES
};

/* `exact`: value is the share of equal items and must be 1. Otherwise it is the largest difference, over the largest
 * value of the official tensor (samples: and the rms of the difference over the signal's), and must not exceed
 * the limit. */
static const struct {
    const char *name, *unit;
    bool exact;
    double limit;
} STAGES[N_STAGES] = {
    {"checkpoint", "files", true, 1},
    {"tokens", "texts", true, 1},
    {"prompt rows", "tensors", false, 1e-4},
    {"talker layers", "tensors", false, 1e-3},
    {"talker state", "frames", false, 1e-3},
    {"talker logits", "frames", false, 1e-3},
    {"predictor logits", "heads", false, 1e-3},
    {"codes", "codes", true, 1},
    {"finish", "cases", true, 1},
    {"streamed = whole", "cases", true, 1},
    {"samples, largest", "cases", false, 1e-3},
    {"samples, rms", "cases", false, 1e-4},
    {"fp64, largest", "cases", false, 1e-3},
    {"fp64, rms", "cases", false, 1e-4},
};

struct tally {
    uint64_t n, n_equal, n_decided; /* cases that are within the limit here only (fp64) */
    double worst;
    char where[160]; /* the first inequality, or the worst case */
};

struct verify {
    utter_model *model;
    struct golden golden;
    struct golden_case c;
    struct tally stages[N_STAGES];
    int frame;     /* of the running case */
    int row;       /* of its prompt: the first of those that run now */
    bool diverged; /* its codes are no longer the official ones: activations cannot be compared */
    float *sound;  /* of the running case */
    size_t n_sound, capacity;
};

static void count_equal(
    struct verify *v, enum stage stage, uint64_t n, uint64_t n_equal, const char *where)
{
    struct tally *t = &v->stages[stage];
    if (n_equal < n && !t->where[0]) {
        snprintf(t->where, sizeof t->where, "first in %s: %s", v->c.name, where);
    }
    t->n += n;
    t->n_equal += n_equal;
}

/* Tells whether it is the worst so far. */
static bool count_difference(struct verify *v, enum stage stage, double difference)
{
    struct tally *t = &v->stages[stage];
    t->n++;
    if (difference <= t->worst) { /* not so for NaN */
        return false;
    }
    t->worst = isnan(difference) ? INFINITY : difference;
    snprintf(t->where, sizeof t->where, "worst in %s, frame %d", v->c.name, v->frame);
    return true;
}

/* The largest difference over the largest official value. */
static double difference(const float *have, const float *want, int64_t n)
{
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)have[i] - (double)want[i]), w = fabs((double)want[i]);
        worst = d > worst || isnan(d) ? d : worst;
        largest = max(w, largest);
    }
    return largest > 0 ? worst / largest : worst;
}

/* Compares [rows][cols] with row `at` and on of an official tensor. */
static void compare(struct verify *v, enum stage stage, const struct tensor *t, int64_t at,
    const float *data, int64_t rows, int64_t cols)
{
    if (!t) {
        return;
    }
    int64_t width = t->n_dims > 0 ? t->dims[t->n_dims - 1] : 0,
            height = (int64_t)(t->bytes / sizeof(float)) / (width ? width : 1);
    if (t->type != DTYPE_F32 || cols != width || at + rows > height) {
        count_difference(v, stage, INFINITY);
        return;
    }
    count_difference(v, stage, difference(data, (const float *)t->data + at * width, rows * cols));
}

static void look(void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct verify *v = user;
    if (v->diverged) {
        return;
    }
    if (strcmp(name, "prompt") == 0) {
        v->row = index;
        compare(v, STAGE_PROMPT, v->c.prompt, v->row, data, rows, cols);
    } else if (strcmp(name, "talker.layer") == 0 && v->frame == 0) {
        compare(v, STAGE_LAYERS, golden_tensor(&v->golden, v->c.name, name, index), v->row, data, rows,
            cols);
    } else if (strcmp(name, "talker.hidden") == 0 && v->frame < v->c.n_frames) {
        compare(v, STAGE_HIDDEN, v->c.hidden, v->frame, data, rows, cols);
    } else if (strcmp(name, "talker.logits") == 0 && v->frame < v->c.n_frames) {
        compare(v, STAGE_LOGITS, v->c.logits, v->frame, data, rows, cols);
    } else if (strcmp(name, "predictor.logits") == 0 && v->frame < v->c.n_frames) {
        int heads = api_config(v->model)->n_codebooks - 1;
        compare(v, STAGE_SUB_LOGITS, v->c.predictor_logits, (int64_t)v->frame * heads + index - 1, data,
            rows, cols);
    }
}

static bool keep_sound(void *user, const float *pcm, size_t n)
{
    struct verify *v = user;
    if (v->n_sound + n > v->capacity) {
        size_t capacity = 2 * (v->n_sound + n);
        float *grown = memory_resize(v->sound, v->capacity, capacity, sizeof *grown);
        if (!grown) {
            return false;
        }
        v->sound = grown;
        v->capacity = capacity;
    }
    memcpy(v->sound + v->n_sound, pcm, n * sizeof *pcm);
    v->n_sound += n;
    return true;
}

static utter_status check_ids(struct verify *v, utter_error *error)
{
    struct ids ids = {0};
    utter_status status = prompt_wrap(v->model->engine.context.tokenizer, v->c.text, &ids, error);
    if (status == UTTER_OK) {
        bool same =
            ids.n == (size_t)v->c.ids->dims[0] && memcmp(ids.at, v->c.ids->data, v->c.ids->bytes) == 0;
        count_equal(v, STAGE_IDS, 1, same, "other ids");
    }
    ids_fini(&ids);
    return status;
}

/* Compares the codes of the newest frame. */
static void check_frame(struct verify *v, const int32_t *codes)
{
    int n = api_config(v->model)->n_codebooks, equal = 0, first = -1;
    if (v->frame >= v->c.n_frames || v->diverged) {
        return;
    }
    size_t at = (size_t)v->frame * (size_t)n;
    const int32_t *want = (const int32_t *)v->c.codes->data + at;
    for (int j = 0; j < n; j++) {
        equal += codes[at + (size_t)j] == want[j];
        first = first < 0 && codes[at + (size_t)j] != want[j] ? j : first;
    }
    char where[96] = "";
    if (first >= 0) {
        snprintf(where, sizeof where, "frame %d codebook %d: %d for %d, margin %.2g", v->frame, first,
            codes[at + (size_t)first], want[first],
            (double)((const float *)v->c.margins->data)[at + (size_t)first]);
        v->diverged = true;
    }
    count_equal(v, STAGE_CODES, (uint64_t)n, (uint64_t)equal, where);
}

static int reference_frames(const struct golden_case *c)
{
    return c->reference ? (int)c->reference->dims[0] : 0;
}

static utter_status make_voice(const struct verify *v, utter_voice **voice, utter_error *error)
{
    const struct golden_case *c = &v->c;
    if (c->is_clone) {
        return voice_new_clone(voice, c->name, c->vector->data, (int)c->vector->dims[0],
            c->reference ? c->reference->data : NULL, reference_frames(c),
            api_config(v->model)->n_codebooks, c->transcript, error);
    }
    return c->speaker ? utter_voice_preset(voice, v->model, c->speaker, error) : UTTER_OK;
}

static utter_status open_case(
    struct verify *v, utter_stream **stream, utter_voice **voice, utter_error *error)
{
    utter_stream_options o;
    utter_status status = utter_stream_options_init(&o, v->model);
    if (status || (status = make_voice(v, voice, error))) {
        return status;
    }
    o.voice = *voice;
    o.language = v->c.language;
    o.instruct = v->c.instruct;
    o.layout = v->c.layout;
    o.talker = (utter_sampling){.top_p = 1, .repetition_penalty = v->c.repetition_penalty};
    o.predictor = (utter_sampling){.top_p = 1, .repetition_penalty = 1};
    o.max_frames = v->c.max_frames;
    o.guard = false;
    if ((status = utter_stream_open(stream, v->model, &o, error)) ||
        (status = utter_stream_text(*stream, v->c.text, v->c.text_bytes, error))) {
        return status;
    }
    return utter_stream_finish(*stream, error);
}

/* Speaks a case greedily; its sound is kept. */
static utter_status run_stream(struct verify *v, utter_stream *stream, utter_error *error)
{
    enum { PIECE = 4096 };
    float pcm[PIECE];
    size_t n, n_frames;
    utter_status status;
    while ((status = utter_stream_read(stream, pcm, PIECE, &n, error)) == UTTER_OK) {
        const int32_t *codes = utter_stream_codes(stream, &n_frames);
        while ((size_t)v->frame < n_frames) {
            check_frame(v, codes);
            v->frame++;
        }
        if (!keep_sound(v, pcm, n)) {
            return error_memory(error, "sound");
        }
    }
    return status == UTTER_END ? UTTER_OK : status;
}

static utter_status check_speech(struct verify *v, utter_error *error)
{
    utter_stream *stream = NULL;
    utter_voice *voice = NULL;
    utter_status status = open_case(v, &stream, &voice, error);
    if (status == UTTER_OK && (status = run_stream(v, stream, error)) == UTTER_OK) {
        if (v->frame < v->c.n_frames && !v->diverged) {
            int n = api_config(v->model)->n_codebooks;
            count_equal(v, STAGE_CODES, (uint64_t)(v->c.n_frames - v->frame) * (uint64_t)n, 0,
                "the stream ended early");
            v->diverged = true;
        }
        bool same = v->frame == v->c.n_frames && (stream->finish == UTTER_FINISH_EOS) == v->c.ends;
        count_equal(v, STAGE_FINISH, 1, same, utter_finish_text(stream->finish));
    }
    utter_stream_free(&stream);
    utter_voice_free(&voice);
    return status;
}

/* Of two sounds at the places that a case keeps (the beginning, and samples at a stride): the largest
 * difference over the peak, and the rms of the difference over the signal's. */
enum { LARGEST, RMS, N_MEASURES };

/* want[2], have[2]: what the case keeps of two official sounds; with `sound`, that of n samples takes the place of
 * have. */
static void measure(const struct golden_case *c, const struct tensor *const want[2],
    const struct tensor *const have[2], const float *sound, size_t n, double out[N_MEASURES])
{
    double worst = sound && n != c->n_samples ? INFINITY : 0, peak = 0, square = 0;
    uint64_t count = 0;
    for (int k = 0; k < 2; k++) {
        size_t stride = k ? c->stride : 1, n_kept = want[k] ? (size_t)want[k]->dims[0] : 0;
        for (size_t i = 0; i < n_kept && (!sound || i * stride < n); i++) {
            double w = ((const float *)want[k]->data)[i],
                   d = fabs((sound ? sound[i * stride] : ((const float *)have[k]->data)[i]) - w);
            worst = d > worst || isnan(d) ? d : worst;
            peak = max(fabs(w), peak);
            square += d * d;
            count++;
        }
    }
    out[LARGEST] = peak > 0 ? worst / peak : worst;
    out[RMS] = count && c->rms > 0 ? sqrt(square / (double)count) / c->rms : worst;
}

/* How much further from fp64 the official fp32 sound is on one kind of CPU than on another: 1.22 times, AVX-512 and
 * AVX2, in the case that needs it (docs/verify.md). */
static const double OFFICIAL_SPREAD = 1.25;

/* Where the case has the official sound in fp64 too, it decides over a difference to the fp32 one that is too
 * large: this sound must be within the limit of fp64, and no further from it than the official fp32 is on some CPU. */
static void compare_sound(struct verify *v, const float *sound, size_t n)
{
    const struct golden_case *c = &v->c;
    const struct tensor *const fp32[2] = {c->samples, c->strided}, *const fp64[2] = {c->samples_fp64,
                                                                       c->strided_fp64};
    double to_fp32[N_MEASURES], to_fp64[N_MEASURES], official[N_MEASURES] = {0};
    bool arbiter = c->samples_fp64 && c->strided_fp64;
    measure(c, fp32, NULL, sound, n, to_fp32);
    if (arbiter) {
        measure(c, fp64, NULL, sound, n, to_fp64);
        measure(c, fp64, fp32, NULL, 0, official);
    }
    for (int i = 0; i < N_MEASURES; i++) {
        enum stage stage = (enum stage)(STAGE_SAMPLES_MAX + i), by = (enum stage)(STAGE_FP64_MAX + i);
        double limit = STAGES[stage].limit;
        const double most = OFFICIAL_SPREAD * official[i];
        bool decided = arbiter && !(to_fp32[i] <= limit) && to_fp64[i] <= limit && to_fp64[i] <= most;
        if (!decided) {
            count_difference(v, stage, to_fp32[i]);
        }
        if (arbiter && count_difference(v, by, to_fp64[i])) {
            snprintf(v->stages[by].where, sizeof v->stages[by].where,
                "worst in %s, official fp32 %.2e from it, %.2e from this", c->name, official[i],
                to_fp32[i]);
        }
        v->stages[by].n_decided += decided;
    }
}

/* The official codes, behind those of a cloned voice's recording. */
static int32_t *codes_to_decode(const struct golden_case *c)
{
    size_t n_reference = c->reference ? c->reference->bytes : 0;
    char *codes = memory_new(n_reference + c->codes->bytes, 1);
    if (codes) {
        if (c->reference) {
            memcpy(codes, c->reference->data, n_reference);
        }
        memcpy(codes + n_reference, c->codes->data, c->codes->bytes);
    }
    return (int32_t *)codes;
}

/* Decodes them, drops the recording, and compares with the official sound, and with what the stream gave. */
static utter_status check_sound(struct verify *v, utter_error *error)
{
    float *streamed = v->sound;
    size_t n_streamed = v->n_sound, n_frames = (size_t)(reference_frames(&v->c) + v->c.n_frames);
    size_t skip = (size_t)reference_frames(&v->c) * (size_t)api_config(v->model)->codec.frame_samples;
    bool comparable = !v->c.is_decode && !v->diverged && !v->c.official_chunks;
    int32_t *codes = codes_to_decode(&v->c);
    v->sound = NULL;
    v->n_sound = v->capacity = 0;
    utter_status status =
        codes ? utter_codec_decode(v->model, codes, n_frames,
                    v->c.official_chunks ? UTTER_CODEC_OFFICIAL_CHUNKS : UTTER_CODEC_WHOLE, 0,
                    keep_sound, v, error)
              : error_memory(error, "codes");
    if (status == UTTER_OK) {
        const float *sound = v->sound + skip;
        size_t n = v->n_sound - skip;
        if (comparable) {
            bool same = n_streamed == n && memcmp(streamed, sound, n * sizeof *streamed) == 0;
            count_equal(v, STAGE_STREAMED, 1, same, "other samples");
        }
        compare_sound(v, sound, n);
    }
    memory_free(codes);
    memory_free(streamed);
    return status;
}

static utter_status run_case(struct verify *v, utter_error *error)
{
    utter_status status = UTTER_OK;
    if (v->c.prompt || golden_tensor(&v->golden, v->c.name, "talker.layer", 0)) {
        snapshot_store_clear(&v->model->engine.context.snapshots); /* every row is computed, and seen */
    }
    v->frame = 0;
    v->diverged = false;
    v->n_sound = 0;
    if (!v->c.is_decode && ((status = check_ids(v, error)) || (status = check_speech(v, error)))) {
        return status;
    }
    return v->c.n_samples ? check_sound(v, error) : UTTER_OK;
}

static void report_stages(const struct verify *v, utter_check_fn *report, void *user)
{
    for (int i = 0; i < N_STAGES; i++) {
        const struct tally *t = &v->stages[i];
        char detail[256];
        if (t->n == 0) {
            continue;
        }
        bool passed = STAGES[i].exact ? t->n_equal == t->n : t->worst <= STAGES[i].limit;
        double value = STAGES[i].exact ? (double)t->n_equal / (double)t->n : t->worst;
        if (STAGES[i].exact) {
            snprintf(detail, sizeof detail, "%llu of %llu %s%s%s", (unsigned long long)t->n_equal,
                (unsigned long long)t->n, STAGES[i].unit, t->where[0] ? ", " : "", t->where);
        } else {
            int used = snprintf(detail, sizeof detail, "%llu %s, %s", (unsigned long long)t->n,
                STAGES[i].unit, t->where[0] ? t->where : "no difference");
            if (t->n_decided) {
                snprintf(detail + used, sizeof detail - (size_t)used, "; decides %llu",
                    (unsigned long long)t->n_decided);
            }
        }
        report(user, &(utter_check){STAGES[i].name, passed, value, STAGES[i].limit, detail});
    }
}

static utter_status run_all(struct verify *v, utter_error *error)
{
    const struct config *c = api_config(v->model);
    if (strcmp(v->golden.kind, c->kind_name) != 0) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the golden file was made on a %s model, this is a %s model", v->golden.kind, c->kind_name);
    }
    size_t n_files;
    const char *other;
    size_t n_same = golden_same_files(&v->golden, v->model->engine.folder, &n_files, &other);
    v->c.name = "another checkpoint than the golden file's";
    count_equal(v, STAGE_FILES, n_files, n_same, other ? other : "");
    utter_status status = UTTER_OK;
    for (size_t i = 0; status == UTTER_OK && i < golden_count(&v->golden); i++) {
        status = golden_case(&v->golden, i, c->n_codebooks, &v->c, error);
        status = status ? status : run_case(v, error);
    }
    return status;
}

utter_status utter_model_verify(
    utter_model *model, const char *golden_path, utter_check_fn *report, void *user, utter_error *error)
{
    utter_status status = api_need(model && golden_path && report ? model : NULL, "an argument", error);
    struct verify *v = status ? NULL : memory_new(1, sizeof *v);
    if (!v) {
        return status ? status : error_memory(error, "verification");
    }
    v->model = model;
    struct prompt_clock *clock = &model->engine.context.prompt_clock;
    const double most_s = clock->most_s;
    if ((status = golden_open(&v->golden, golden_path, error)) == UTTER_OK) {
        clock->most_s = 0; /* a prompt comes in one piece, behind which is its first frame */
        model->engine.no_waiting = true; /* what is tapped belongs to the frame that comes next */
        model->engine.context.ops->tap(model->engine.context.backend, look, v);
        status = run_all(v, error);
        model->engine.context.ops->tap(model->engine.context.backend, NULL, NULL);
        model->engine.no_waiting = false;
        clock->most_s = most_s;
        if (status == UTTER_OK) {
            report_stages(v, report, user);
        }
    }
    golden_close(&v->golden);
    memory_free(v->sound);
    memory_free(v);
    return status;
}
