/* SPDX-License-Identifier: Apache-2.0
 * One run of the kernel beside the CPU backend; see frame_driver.h. */
#ifndef TESTS_CUDA_FRAME_COMPARE_H
#define TESTS_CUDA_FRAME_COMPARE_H

#include "tests/cuda/frame_driver.h"

struct comparison {
    const char *folder;
    int n_rows, n_frames;
    bool sampling, forced;
    double limit; /* of relative errors of logits */
};

struct rig {
    const struct model *model;
    struct cuda_device device;
    struct cuda_weights weights;
    struct cuda_lanes lanes;
    struct frame_kernel *kernel;
    struct cuda_frame_out *out, *out_device;
    float *row, *logits;
    int32_t *forced;
    uint64_t sequence;
    int position;
};

/* The model comes out packed. */
static void rig_open(
    struct rig *rig, struct model *model, int n_lanes, int n_positions, enum frame_packed packed)
{
    utter_error error;
    const struct config *c = model->config;
    rig->model = model;
    if (packed == FRAME_PACKED_PREDICTOR) {
        machine_check("pack", model_pack_predictor(model, DTYPE_Q8, 8, &error), &error);
    } else if (packed == FRAME_PACKED_ALL) {
        machine_check("pack", model_pack(model, DTYPE_Q8, 8, &error), &error);
    }
    machine_check("weights", cuda_weights_open(&rig->weights, model, &rig->device, &error), &error);
    lanes_of(&rig->lanes, c, n_lanes, n_positions);
    machine_check("open",
        frame_kernel_open(&rig->kernel, &rig->weights, &rig->device, &rig->lanes, c, 0, &error),
        &error);
    const size_t n = (size_t)n_lanes;
    rig->row = (float *)machine_new(n * (size_t)c->talker.width * 4, NULL);
    rig->logits =
        (float *)machine_new(n * (size_t)c->n_codebooks * (size_t)c->predictor_vocabulary * 4, NULL);
    rig->forced = (int32_t *)machine_new(DRIVER_CODEBOOKS * 4, NULL);
    frame_kernel_tap(rig->kernel, rig->logits);
}

static void rig_reset_lane(struct rig *rig, int l, const struct lane_settings *settings)
{
    struct cuda_lane lane = {};
    const size_t n = (size_t)rig->model->config->codec_vocabulary;
    lane.settings = *settings;
    machine_write(rig->lanes.state + l, &lane, sizeof lane);
    uint8_t *zero = (uint8_t *)calloc(1, n);
    machine_write(rig->lanes.seen + (size_t)l * n, zero, n);
    free(zero);
}

static void rig_reset(struct rig *rig, const struct lane_settings *settings)
{
    rig->position = 0;
    rig_reset_lane(rig, 0, settings);
}

static int rig_run_lane(
    struct rig *rig, int lane, int position, const float *row, const int32_t *forced, uint32_t flags)
{
    utter_error error;
    uint32_t errors;
    const size_t width = (size_t)rig->model->config->talker.width;
    float *at = rig->row + (size_t)lane * width;
    if (row) {
        machine_write(at, row, width * 4);
    }
    if (forced) {
        machine_write(rig->forced, forced, (size_t)rig->model->config->n_codebooks * 4);
    }
    const struct frame_ask ask = {
        lane, position, at, forced ? rig->forced : NULL, rig->out_device + lane};
    machine_check(
        "run", frame_kernel_run(rig->kernel, &ask, 1, flags, ++rig->sequence, &error), &error);
    machine_check("wait", frame_kernel_errors(rig->kernel, &errors, &error), &error);
    if (errors) {
        printf("  error bits %u\n", (unsigned)errors);
    }
    return errors != 0;
}

static int rig_run(struct rig *rig, const float *row, const int32_t *forced, uint32_t flags)
{
    const int bad = rig_run_lane(rig, 0, rig->position, row, forced, flags);
    rig->position += flags & FRAME_STEP ? 1 : 0;
    return bad;
}

static void make_rows(const struct config *c, struct row *rows, int n)
{
    for (int i = 0; i < n; i++) {
        rows[i] = (struct row){};
        rows[i].text = i == 0 ? c->tts_pad : (i * 37 + 5) % c->text_vocabulary;
        rows[i].codec = i % 3 == 0 ? ROW_NONE : ROW_ID;
        rows[i].id = (i * 13) % c->codec_vocabulary;
    }
}

/* One comparison on its way. */
struct race {
    struct rig *rig;
    const struct comparison *how;
    struct backend *cpu;
    struct expected e;
    struct row *rows;
    float *got;
    int bad, wrong, all;
    double hidden, talker, predictor; /* largest relative errors */
};

static void race_begin(struct race *r)
{
    const struct config *c = r->rig->model->config;
    const int n = r->how->n_rows;
    r->e.rows = (float *)calloc((size_t)n * c->talker.width, 4);
    r->e.hidden = (float *)calloc((size_t)c->talker.width, 4);
    r->e.talker = (float *)calloc((size_t)c->codec_vocabulary, 4);
    r->e.predictor = (float *)calloc((size_t)c->n_codebooks * c->predictor_vocabulary, 4);
    r->got = (float *)calloc((size_t)c->n_codebooks * c->predictor_vocabulary + 4096, 4);
    r->rows = (struct row *)calloc((size_t)n, sizeof *r->rows);
    struct lane_settings settings = {{0, 50, 1, 1.05f}, {0, 50, 1, 1}, 7, 2};
    settings.talker.temperature = settings.predictor.temperature = r->how->sampling ? 0.9f : 0;
    utter_error error;
    struct backend_options options = {};
    options.n_lanes = 1;
    options.n_threads = 8; /* others may be at work beside this */
    options.lane_positions = n + r->how->n_frames + 1;
    machine_check("cpu", cpu_backend.open(&r->cpu, r->rig->model, &options, &error), &error);
    machine_check("reset", cpu_backend.lane_reset(r->cpu, 0, &settings, &error), &error);
    cpu_backend.tap(r->cpu, expected_tap, &r->e);
    make_rows(c, r->rows, n);
    machine_check("prefill", cpu_backend.prefill(r->cpu, 0, r->rows, n, &error), &error);
    rig_reset(r->rig, &settings);
    for (int i = 0; i < n; i++) {
        uint32_t last = i + 1 < n ? FRAME_NO_HEAD : FRAME_NO_CODES;
        r->bad += rig_run(
            r->rig, r->e.rows + (size_t)i * c->talker.width, NULL, FRAME_STEP | FRAME_ROW | last);
    }
}

static void race_logits(struct race *r, int f)
{
    const struct config *c = r->rig->model->config;
    const int width = c->talker.width, vocabulary = c->predictor_vocabulary;
    const double limit = r->how->limit;
    machine_read(r->got, r->rig->lanes.hidden, (size_t)width * 4);
    r->hidden =
        fmax(r->hidden, compare("hidden of frame", f, r->got, r->e.hidden, width, limit, &r->bad));
    machine_read(r->got, r->rig->lanes.logits, (size_t)c->codec_vocabulary * 4);
    r->talker = fmax(r->talker,
        compare("talker logits of frame", f, r->got, r->e.talker, c->codec_vocabulary, limit, &r->bad));
    machine_read(r->got, r->rig->logits, (size_t)c->n_codebooks * vocabulary * 4);
    for (int j = 1; j < c->n_codebooks && !r->rig->out->end; j++) {
        const float *got = r->got + (size_t)j * vocabulary,
                    *want = r->e.predictor + (size_t)j * vocabulary;
        r->predictor = fmax(r->predictor, compare("predictor logits of frame, code", f * 100 + j, got,
                                              want, vocabulary, limit, &r->bad));
    }
}

/* False when there is nothing to compare behind this frame. */
static bool race_frame(struct race *r, int f)
{
    const struct config *c = r->rig->model->config;
    const struct cuda_frame_out *out = r->rig->out;
    int32_t codes[DRIVER_CODEBOOKS];
    for (int j = 0; j < c->n_codebooks; j++) {
        codes[j] = (f * 131 + j * 517 + 3) % c->predictor_vocabulary;
    }
    const int32_t *forced = r->how->forced ? codes : NULL;
    utter_error error;
    struct frame_in in = {0, c->tts_pad, forced};
    struct lane_out want;
    machine_check("frame", cpu_backend.frame(r->cpu, &in, 1, &error), &error);
    machine_check("collect", cpu_backend.collect(r->cpu, 0, &want, &error), &error);
    r->bad += rig_run(
        r->rig, r->e.rows, forced, f == 0 ? 0 : FRAME_STEP); /* row 0 is the padding text alone */
    if (out->end != want.end || out->not_a_number != want.not_a_number ||
        out->sequence != r->rig->sequence) {
        printf("  frame %d: end %d nan %d sequence %llu, wanted %d %d %llu\n", f, out->end,
            out->not_a_number, (unsigned long long)out->sequence, want.end, want.not_a_number,
            (unsigned long long)r->rig->sequence);
        r->bad++;
    }
    race_logits(r, f);
    for (int j = 0; j < c->n_codebooks && !want.end; j++, r->all++) {
        if (out->codes[j] != want.codes[j] && r->wrong++ < 5) {
            printf("  frame %d code %d: %d, wanted %d\n", f, j, out->codes[j], want.codes[j]);
        }
    }
    return !want.end && (r->how->forced || r->wrong == 0) && r->bad < 20;
}

/* The number of faults. */
static int compare_run(struct rig *rig, const struct comparison *how)
{
    struct race r = {};
    r.rig = rig;
    r.how = how;
    race_begin(&r);
    for (int f = 0; f < how->n_frames && race_frame(&r, f); f++) {
    }
    printf("%s%s: %d rows, %d of %d codes equal, relative errors: hidden %.2e, talker %.2e, predictor "
           "%.2e; "
           "%d faults\n",
        how->sampling ? "sampled" : "greedy", how->forced ? ", forced" : "", how->n_rows,
        r.all - r.wrong, r.all, r.hidden, r.talker, r.predictor, r.bad);
    cpu_backend.close(&r.cpu);
    free(r.rows);
    free(r.got);
    free(r.e.rows);
    free(r.e.hidden);
    free(r.e.talker);
    free(r.e.predictor);
    return r.bad + r.wrong;
}

#endif
