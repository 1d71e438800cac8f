/* SPDX-License-Identifier: Apache-2.0
 * Models behind utter.h: argument checks, and the choice of the backend. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "text/feed.h"
#ifdef UTTER_CUDA
#include "cuda/device/device.h"
#endif

#define TEXT(x) #x
#define VERSION_TEXT(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)

uint32_t utter_version_number(void)
{
    return UTTER_VERSION_MAJOR * 1000000u + UTTER_VERSION_MINOR * 1000u + UTTER_VERSION_PATCH;
}

const char *utter_version_text(void)
{
    return VERSION_TEXT(UTTER_VERSION_MAJOR, UTTER_VERSION_MINOR, UTTER_VERSION_PATCH);
}

const char *utter_status_text(utter_status status)
{
    switch (status) {
    case UTTER_OK:
        return "ok";
    case UTTER_AGAIN:
        return "again";
    case UTTER_END:
        return "end";
    case UTTER_E_ARGUMENT:
        return "wrong argument";
    case UTTER_E_FILE:
        return "file error";
    case UTTER_E_MODEL:
        return "model error";
    case UTTER_E_MEMORY:
        return "out of memory";
    case UTTER_E_IO:
        return "write error";
    case UTTER_E_DEVICE:
        return "device error";
    case UTTER_E_NUMBER:
        return "not a number";
    case UTTER_E_CANCELLED:
        return "cancelled";
    case UTTER_E_INTERNAL:
        return "internal error";
    }
    return "unknown status";
}

utter_status api_copy_sized(
    void *to, size_t to_size, const void *from, size_t from_size, const char *what, utter_error *error)
{
    if (from_size < sizeof(size_t) || from_size > 1 << 16 || to_size < sizeof(size_t) ||
        to_size > 1 << 16) {
        return error_set(
            error, UTTER_E_ARGUMENT, "%s: its size is not set (fill it with the _init call)", what);
    }
    memcpy(to, from, min(from_size, to_size));
    return UTTER_OK;
}

void api_init_sized(void *to, size_t to_size, const void *from, size_t from_size)
{
    if (to && to_size >= sizeof(size_t) && to_size <= 1 << 16) {
        memset(to, 0, to_size);
        memcpy(to, from, min(from_size, to_size));
        memcpy(to, &to_size, sizeof to_size);
    }
}

utter_status api_need(const void *pointer, const char *what, utter_error *error)
{
    return pointer ? UTTER_OK : error_set(error, UTTER_E_ARGUMENT, "%s is NULL", what);
}

utter_status api_need_room(
    const void *handle, const float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    utter_status status = api_need(pcm && n ? handle : NULL, "an argument", error);
    if (status) {
        return status;
    }
    *n = 0;
    return capacity ? UTTER_OK /* nothing could be told from the end */
                    : error_set(error, UTTER_E_ARGUMENT, "no room for samples: capacity is 0");
}

/* ---- Opening ---- */

/* With the 0.6B model a clone in context takes 30 MB for half a minute of recording, 12 MB for 3 seconds. */
#define SNAPSHOT_BYTES ((uint64_t)256 << 20)

void utter_model_options_init_sized(utter_model_options *options, size_t size)
{
    const utter_model_options all = {.device = "auto", .n_lanes = 1, .snapshot_bytes = SNAPSHOT_BYTES};
    api_init_sized(options, size, &all, sizeof all);
}

bool utter_gpu_name(char *name, size_t size, int index)
{
#ifdef UTTER_CUDA
    return name && cuda_device_name(name, size, index);
#else
    (void)index;
    if (name) {
        snprintf(name, size, "this program was built without CUDA");
    }
    return false;
#endif
}

/* "cuda", "cuda:N", and with " as CARD" behind, for measurements. */
static bool is_gpu(const char *device, struct device_choice *choice)
{
    static const char as[] = " as ";
    if (strncmp(device, "cuda", 4) != 0) {
        return false;
    }
    const char *rest = device + 4;
    if (*rest == ':') {
        const size_t n = strspn(rest + 1, "0123456789");
        if (n < 1 || n > 3) {
            return false;
        }
        choice->index = atoi(rest + 1);
        rest += 1 + n;
    }
    choice->as = strncmp(rest, as, strlen(as)) == 0 ? rest + strlen(as) : NULL;
    return !*rest || choice->as;
}

utter_status api_choose_device(
    const utter_model_options *o, struct device_choice *choice, utter_error *error)
{
    const char *device = o->device;
    *choice = (struct device_choice){0};
    if (!device || strcmp(device, "auto") == 0) {
        /* CPU kernels by name are for the CPU. */
        choice->gpu = !o->cpu_kernels;
        choice->cpu = true;
        return UTTER_OK;
    }
    choice->cpu = strcmp(device, "cpu") == 0;
    choice->gpu = is_gpu(device, choice);
    if (choice->cpu || choice->gpu) {
        return UTTER_OK;
    }
    char quoted[96];
    error_quote(quoted, sizeof quoted, device, strlen(device));
    return error_set(
        error, UTTER_E_ARGUMENT, "unknown device \"%s\" (known: auto, cpu, cuda, cuda:N)", quoted);
}

#ifndef UTTER_CUDA
/* Whether the system has NVIDIA's driver: then there is a GPU that a program for it could use. */
static bool has_driver(void)
{
    char *version = NULL;
    size_t bytes;
    const utter_status status = file_read_any("/sys/module/nvidia/version", 64, &version, &bytes, NULL);
    memory_free(version);
    return status == UTTER_OK;
}
#endif

/* Opens on the GPU where the choice allows it. UTTER_AGAIN: the CPU's turn; *note says why where that is news. */
static utter_status open_on_gpu(struct engine *engine, const char *path,
    const struct engine_options *options, const struct device_choice *choice, utter_error *note,
    utter_error *error)
{
    *note = (utter_error){0};
    if (!choice->gpu) {
        return UTTER_AGAIN;
    }
#ifdef UTTER_CUDA
    utter_error local;
    struct engine_options gpu = *options;
    gpu.ops = &cuda_backend;
    gpu.backend.device = choice->index;
    gpu.backend.as = choice->as;
    utter_status status = choice->cpu ? cuda_device_offered(&local) : UTTER_OK;
    status = status ? status : engine_open(engine, path, &gpu, &local);
    if (status && choice->cpu && status != UTTER_E_FILE) {
        error_set(note, status, "the cpu speaks: %s; --device cpu is quiet", local.text);
        return UTTER_AGAIN;
    }
    if (status && error) {
        *error = local;
    }
    return status;
#else
    (void)engine, (void)path, (void)options;
    if (choice->cpu && has_driver()) {
        error_set(note, UTTER_E_DEVICE,
            "the cpu speaks: this program was built without CUDA, though NVIDIA's driver is here; %s",
            "--device cpu is quiet");
    }
    return choice->cpu ? UTTER_AGAIN
                       : error_set(error, UTTER_E_DEVICE,
                             "device cuda: this program was built without it (make with nvcc, or take "
                             "device cpu)");
#endif
}

static utter_status check_range(const char *what, int value, int low, int high, utter_error *error)
{
    if (value < low || value > high) {
        return error_set(error, UTTER_E_ARGUMENT, "%s %d is not in %d..%d", what, value, low, high);
    }
    return UTTER_OK;
}

static utter_status check_seconds(const char *what, double value, utter_error *error)
{
    return value >= 0 ? UTTER_OK
                      : error_set(error, UTTER_E_ARGUMENT, "%s %g is not at least 0", what, value);
}

utter_status utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error)
{
    char found[PATH_MAX];
    utter_model_options o;
    utter_error note;
    struct device_choice choice;
    struct engine_options how = {.ops = &cpu_backend};
    utter_model_options_init(&o);
    if (api_need(model, "model", error)) {
        return UTTER_E_ARGUMENT;
    }
    *model = NULL;
    utter_status status = find_checkpoint(found, sizeof found, path, error);
    path = found;
    if (status ||
        (options && (status = api_copy_sized(
                         &o, sizeof o, options, options->size, "utter_model_options", error))) ||
        (status = check_range("n_threads", o.n_threads, 0, 1024, error)) ||
        (status = check_range("n_lanes", o.n_lanes, 0, 4096, error)) ||
        (status = check_range("pretokenizer", (int)o.pretokenizer, 0, 1, error)) ||
        (status = check_range("weights", (int)o.weights, 0, UTTER_WEIGHTS_BF16, error)) ||
        (status = check_seconds("prompt_seconds", o.prompt_seconds, error)) ||
        (status = api_choose_device(&o, &choice, error))) {
        return status;
    }
    how.backend = (struct backend_options){
        .n_lanes = o.n_lanes, .n_threads = o.n_threads, .cpu_kernels = o.cpu_kernels};
    how.backend.weights = o.weights;
    how.snapshot_bytes = o.snapshot_bytes;
    how.prompt_s = o.prompt_seconds;
    how.cache = o.cache;
    how.native_pretokenizer = o.pretokenizer == UTTER_PRETOKENIZER_NATIVE;
    utter_model *m = memory_new(1, sizeof *m);
    if (!m) {
        return error_memory(error, "model");
    }
    status = open_on_gpu(&m->engine, path, &how, &choice, &note, error);
    if (status == UTTER_AGAIN) {
        status = engine_open(&m->engine, path, &how, error);
    }
    if (status) {
        memory_free(m);
        return status;
    }
    m->engine.log = o.log;
    m->engine.log_user = o.log_user;
    if (note.code) {
        engine_log(&m->engine, note.text);
    }
    *model = m;
    return UTTER_OK;
}

utter_status utter_model_quantize(
    const char *path, utter_weights weights, const char *file, utter_error *error)
{
    return utter_model_quantize_told(path, weights, file, NULL, NULL, error);
}

utter_status utter_model_quantize_told(const char *path, utter_weights weights, const char *file,
    utter_progress_fn *progress, void *user, utter_error *error)
{
    struct progress told = {.tell = progress, .user = user, .what = "the packing"};
    char found[PATH_MAX];
    struct model *model = NULL;
    utter_status status = find_checkpoint(found, sizeof found, path, error);
    path = found;
    if (status || (status = api_need(file, "file", error)) ||
        (status = check_range("weights", (int)weights, UTTER_WEIGHTS_Q8, UTTER_WEIGHTS_Q4, error)) ||
        (status = model_open(&model, path, error))) {
        return status;
    }
    enum dtype type = weights == UTTER_WEIGHTS_Q8 ? DTYPE_Q8 : DTYPE_Q4;
    status = model_file_write(model, path, type, file, &told, error);
    model_close(&model);
    return status;
}

void utter_model_close(utter_model **model)
{
    if (model && *model) {
        engine_close(&(*model)->engine);
        memory_free(*model);
        *model = NULL;
    }
}

/* ---- What it is ---- */

utter_status utter_model_get_info(const utter_model *model, utter_model_info *info)
{
    if (!model || !info) {
        return UTTER_E_ARGUMENT;
    }
    const struct stream_context *on = &model->engine.context;
    const struct model *m = on->model;
    const struct config *c = m->config;
    struct backend_memory memory = {0};
    utter_model_info full = {.size = info->size};
    on->ops->memory(on->backend, &memory);
    on->ops->kernels(on->backend, &full.kernels, &full.all_kernels, &full.n_threads);
    full.kind = c->kind;
    full.kind_name = c->kind_name;
    full.size_name = c->size_name;
    full.device = on->ops->name;
    full.takes_instructions = prompt_takes_instructions(c);
    full.sample_rate = c->codec.sample_rate;
    full.frame_samples = c->codec.frame_samples;
    full.n_codebooks = c->n_codebooks;
    full.codebook_size = c->codec.codebook_size;
    full.n_lanes = model->engine.n_lanes;
    full.n_voices = c->n_voices;
    for (int i = 0; i < c->n_languages; i++) {
        full.n_languages += !config_is_dialect(c->languages[i].name);
    }
    full.width = c->talker.width;
    full.n_layers = c->talker.n_layers;
    full.predictor_width = c->predictor.width;
    full.predictor_layers = c->predictor.n_layers;
    full.max_positions = c->max_positions;
    full.talker_parameters = m->talker_parameters;
    full.predictor_parameters = m->predictor_parameters;
    full.vocoder_parameters = m->vocoder_parameters;
    full.all_parameters = m->all_parameters;
    full.file_bytes =
        tensor_set_bytes(m->tensors) + (m->packed_file ? 0 : tensor_set_bytes(m->codec_tensors));
    full.talker_frame_bytes = m->talker_frame_bytes;
    full.predictor_frame_bytes = m->predictor_frame_bytes;
    full.vocoder_frame_bytes = m->vocoder_frame_bytes;
    full.frame_bytes = full.talker_frame_bytes + full.predictor_frame_bytes + full.vocoder_frame_bytes;
    full.weights = model_weights_name(m);
    full.n_snapshots = on->snapshots.n;
    full.snapshot_bytes = on->snapshots.used_bytes;
    full.most_lanes = memory.most_lanes;
    memcpy(full.step_s, memory.step_s, sizeof full.step_s);
    full.device_gb_per_s = 1e-9 * memory.bytes_per_s;
    full.memory_bytes = memory.shared_bytes + (uint64_t)model->engine.n_lanes * memory.lane_bytes;
    return api_copy_sized(info, info->size, &full, sizeof full, "utter_model_info", NULL);
}

const char *utter_model_voice_name(const utter_model *model, int index)
{
    const struct config *c = model ? api_config(model) : NULL;
    return c && index >= 0 && index < c->n_voices ? c->voices[index].name : NULL;
}

const char *utter_model_voice_dialect(const utter_model *model, int index)
{
    const struct config *c = model ? api_config(model) : NULL;
    return c && index >= 0 && index < c->n_voices ? c->voices[index].dialect : NULL;
}

const char *utter_model_language_name(const utter_model *model, int index)
{
    const struct config *c = model ? api_config(model) : NULL;
    for (int i = 0; c && index >= 0 && i < c->n_languages; i++) {
        if (!config_is_dialect(c->languages[i].name) && index-- == 0) {
            return c->languages[i].name;
        }
    }
    return NULL;
}

utter_status utter_model_step(utter_model *model, utter_error *error)
{
    utter_status status = api_need(model, "model", error);
    return status ? status : engine_step(&model->engine, false, error);
}

utter_status utter_model_step_together(utter_model *model, utter_error *error)
{
    utter_status status = api_need(model, "model", error);
    return status ? status : engine_step(&model->engine, true, error);
}

utter_status utter_model_tokenize(const utter_model *model, const char *text, size_t bytes,
    int32_t **ids, size_t *n_ids, utter_error *error)
{
    struct ids list = {0};
    utter_status status = api_need(model && text && ids && n_ids ? model : NULL, "an argument", error);
    if (status) {
        return status;
    }
    *ids = NULL;
    *n_ids = 0;
    status = tokenizer_encode(model->engine.context.tokenizer, text, bytes, &list, error);
    if (status == UTTER_OK && !list.at && !(list.at = memory_new(1, sizeof *list.at))) {
        status = error_memory(error, "ids");
    }
    if (status) {
        ids_fini(&list);
        return status;
    }
    memory_free(list.begin);
    *ids = list.at;
    *n_ids = list.n;
    return UTTER_OK;
}

void utter_memory_free(void *memory)
{
    memory_free(memory);
}
