/* SPDX-License-Identifier: Apache-2.0
 * utter info and verify: what a model is, and whether it is right. */
#include <jansson.h>
#include <stdio.h>

#include "cli/file_kind.h"
#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"

/* Who chose a setting that can be chosen ahead. */
static const char *rule_of(const struct setting *setting, const char *option)
{
    return setting->given ? option : setting->rule ? setting->rule : "nobody chose";
}

/* What utter quantize wrote: a file in place of a checkpoint's folder. */
static bool is_packed(const char *path)
{
    return file_kind(path) == FILE_TENSORS;
}

/* What a checkpoint far smaller than the released ones says of its size is that of its ancestor. */
static bool is_sized(const utter_model_info *i)
{
    return i->all_parameters > 400000000;
}

/* The GPUs that a device option may name. */
static void print_gpus(void)
{
    char name[128];
    for (int i = 0; utter_gpu_name(name, sizeof name, i); i++) {
        put_line("GPU          cuda:%d, %s", i, name);
    }
}

static json_t *gpus_json(void)
{
    json_t *list = json_array();
    char name[128];
    for (int i = 0; utter_gpu_name(name, sizeof name, i); i++) {
        json_array_append_new(list, json_string(name));
    }
    return list;
}

/* Of 2^step lanes together, by what is foretold. */
static double times_real_time(const utter_model_info *i, int step)
{
    return (1 << step) * (double)i->frame_samples / i->sample_rate / i->step_s[step];
}

static json_t *foretold_json(const utter_model_info *i)
{
    json_t *list = json_array();
    for (int step = 0; i->step_s[0] > 0 && step < (int)(sizeof i->step_s / sizeof *i->step_s); step++) {
        json_array_append_new(
            list, json_pack("{s:i,s:f}", "lanes", 1 << step, "seconds", i->step_s[step]));
    }
    return list;
}

static void print_info(const utter_model_info *i, const char *path, const struct settings *s)
{
    double million = 1e-6;
    bool sized = is_sized(i);
    put_line("model        %s%s (%s)", path, is_packed(path) ? ", packed into one file" : "",
        rule_of(&s->model, "-m"));
    put_line("kind         %s%s%s%s", i->kind_name, sized ? ", " : "", sized ? i->size_name : "",
        i->takes_instructions ? ", takes instructions" : "");
    printf("voices       %d, languages %d\n", i->n_voices, i->n_languages);
    printf("talker       %d layers, width %d, %.1f M parameters\n", i->n_layers, i->width,
        million * (double)i->talker_parameters);
    printf("predictor    %d layers, width %d, %.1f M parameters\n", i->predictor_layers,
        i->predictor_width, million * (double)i->predictor_parameters);
    printf("vocoder      %.1f M parameters\n", million * (double)i->vocoder_parameters);
    printf("in all       %.1f M parameters\n", million * (double)i->all_parameters);
    printf("frame        %d samples at %d Hz, %d codes of 0..%d\n", i->frame_samples, i->sample_rate,
        i->n_codebooks, i->codebook_size - 1);
    printf("positions    %d\n", i->max_positions);
    printf("files        %.1f MB mapped\n", million * (double)i->file_bytes);
    printf("memory       %.1f MB on top\n", million * (double)i->memory_bytes);
    printf("each frame   reads %.1f MB of weights, mostly %s\n", million * (double)i->frame_bytes,
        i->weights);
    put_line(
        "device       %s, threads %d (%s)", i->device, i->n_threads, rule_of(&s->device, "--device"));
    printf("kernels      %s (of %s)\n", i->kernels, i->all_kernels);
    print_gpus();
    if (i->step_s[0] > 0) {
        put_line(
            "foretold     a frame and its sound take %.1f ms of one lane, %.1f of 8, %.1f of 64: %.0f, "
            "%.0f, %.0f times real time",
            1e3 * i->step_s[0], 1e3 * i->step_s[3], 1e3 * i->step_s[6], times_real_time(i, 0),
            times_real_time(i, 3), times_real_time(i, 6));
    }
    if (i->most_lanes > 0) {
        printf("lanes        up to %d fit into the GPU's memory\n", i->most_lanes);
    }
}

static int print_info_json(const utter_model_info *i, const char *path, const struct settings *s)
{
    json_t *object = json_pack("{s:o,s:s,s:b,s:s,s:s?,s:b,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}",
        "path", json_name(path), "chosen_by", rule_of(&s->model, "-m"), "packed", is_packed(path),
        "kind", i->kind_name, "size", is_sized(i) ? i->size_name : NULL, "takes_instructions",
        i->takes_instructions, "voices", i->n_voices, "languages", i->n_languages, "width", i->width,
        "layers", i->n_layers, "predictor_width", i->predictor_width, "predictor_layers",
        i->predictor_layers, "codebooks", i->n_codebooks, "codebook_size", i->codebook_size,
        "frame_samples", i->frame_samples, "sample_rate", i->sample_rate, "positions",
        i->max_positions);
    json_t *machine = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:s,s:i,s:s,s:s,s:i}",
        "talker_parameters", (json_int_t)i->talker_parameters, "predictor_parameters",
        (json_int_t)i->predictor_parameters, "vocoder_parameters", (json_int_t)i->vocoder_parameters,
        "parameters", (json_int_t)i->all_parameters, "file_bytes", (json_int_t)i->file_bytes,
        "memory_bytes", (json_int_t)i->memory_bytes, "frame_bytes", (json_int_t)i->frame_bytes,
        "weights", i->weights, "device", i->device, "threads", i->n_threads, "kernels", i->kernels,
        "all_kernels", i->all_kernels, "most_lanes", i->most_lanes);
    json_object_set_new(machine, "gpus", gpus_json());
    json_object_set_new(machine, "foretold_steps", foretold_json(i));
    json_object_update(object, machine);
    json_decref(machine);
    return report_json(object);
}

int command_info(const struct invocation *invocation)
{
    utter_model *model = NULL;
    const char *path = checkpoint_folder(&invocation->settings);
    int code = path ? checkpoint_open_folder(&model, path, &invocation->settings, 1) : 1;
    if (code == 0) {
        utter_model_info info = checkpoint_info(model);
        if (invocation->settings.json.given) {
            code = print_info_json(&info, path, &invocation->settings);
        } else {
            print_info(&info, path, &invocation->settings);
        }
    }
    utter_model_close(&model);
    return code;
}

struct verdict {
    int n_checks, n_failed;
    json_t *checks; /* NULL: print lines */
};

static void take_check(void *user, const utter_check *check)
{
    struct verdict *verdict = user;
    verdict->n_checks++;
    verdict->n_failed += !check->passed;
    if (verdict->checks) {
        json_array_append_new(verdict->checks,
            /* JSON has no word for what is not a number: null. */
            json_pack("{s:s,s:b,s:o?,s:o?,s:s?}", "stage", check->stage, "passed", check->passed,
                "value", json_real(check->value), "limit", json_real(check->limit), "detail",
                check->detail));
    } else {
        put_line("%-4s  %-16s  %-12.6g (limit %.6g)  %s", check->passed ? "ok" : "FAIL", check->stage,
            check->value, check->limit, check->detail ? check->detail : "");
        fflush(stdout);
    }
}

static int verify(utter_model *model, const struct invocation *invocation)
{
    struct verdict verdict = {0};
    verdict.checks = invocation->settings.json.given ? json_array() : NULL;
    utter_error error = {0};
    utter_status status = utter_model_verify(model, invocation->words[0], take_check, &verdict, &error);
    int code = status ? fail_status(status, &error) : 0;
    if (code == 0 && verdict.n_checks == 0) {
        code = fail(1, "%s: holds nothing that can be compared", invocation->words[0]);
    }
    if (code == 0 && verdict.checks) {
        code = report_json(json_pack("{s:i,s:i,s:O}", "checks", verdict.n_checks, "failed",
            verdict.n_failed, "stages", verdict.checks));
    } else if (code == 0) {
        printf("%s: %d of %d stages agree\n", verdict.n_failed ? "DIFFERENT" : "EQUAL",
            verdict.n_checks - verdict.n_failed, verdict.n_checks);
    }
    json_decref(verdict.checks);
    return code == 0 && verdict.n_failed ? 1 : code;
}

int command_verify(const struct invocation *invocation)
{
    utter_model *model = NULL;
    int code = checkpoint_open(&model, &invocation->settings, 1);
    if (code == 0) {
        code = verify(model, invocation);
    }
    utter_model_close(&model);
    return code;
}
