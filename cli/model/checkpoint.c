/* SPDX-License-Identifier: Apache-2.0
 * Opens the model that the options name and prepares what a stream is asked for. */
#include "cli/model/checkpoint.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "cli/defaults.h"
#include "cli/model/hub_place.h"
#include "cli/report.h"
#include "cli/voice/voice_lookup.h"

const char *checkpoint_folder(const struct settings *settings)
{
    static char folder[PATH_MAX];
    return checkpoint_find(folder, sizeof folder, settings->model.text) ? NULL : folder;
}

int checkpoint_find(char *path, size_t size, const char *name)
{
    utter_error error = {0};
    utter_status status = utter_model_find(path, size, name, hub_folder(), &error);
    return status ? fail_status(status, &error) : 0;
}

int checkpoint_open(utter_model **model, const struct settings *settings, int n_lanes)
{
    *model = NULL;
    const char *folder = checkpoint_folder(settings);
    return folder ? checkpoint_open_folder(model, folder, settings, n_lanes) : 1;
}

int checkpoint_look(utter_model **model, const struct settings *settings)
{
    struct settings here = *settings;
    here.device.text = "cpu";
    return checkpoint_open(model, &here, 1);
}

utter_weights checkpoint_weights(const struct settings *settings)
{
    const char *weights = settings->weights.text ? settings->weights.text : "";
    return strcmp(weights, "bf16") == 0           ? UTTER_WEIGHTS_BF16
           : strcmp(weights, "q8") == 0           ? UTTER_WEIGHTS_Q8
           : strcmp(weights, "q4") == 0           ? UTTER_WEIGHTS_Q4
           : strcmp(weights, "q8-predictor") == 0 ? UTTER_WEIGHTS_Q8_PREDICTOR
                                                  : UTTER_WEIGHTS_STORED;
}

int checkpoint_open_folder(
    utter_model **model, const char *folder, const struct settings *settings, int n_lanes)
{
    utter_model_options options;
    utter_model_options_init(&options);
    char as[96];
    options.device = settings->device.text;
    if (settings->as.given) { /* a GPU that does no more than this card can */
        snprintf(as, sizeof as, "%s as %s", strcmp(options.device, "auto") ? options.device : "cuda",
            settings->as.text);
        options.device = as;
    }
    options.n_threads = (int)settings->threads.integer;
    options.cpu_kernels = settings->kernels.text;
    options.n_lanes = n_lanes;
    options.weights = checkpoint_weights(settings);
    options.snapshot_bytes = settings->snapshots.integer << 20;
    options.cache = defaults_cache();
    options.log = settings->quiet.given ? NULL : note_from_library;
    if (settings->pretokenizer.text && strcmp(settings->pretokenizer.text, "native") == 0) {
        options.pretokenizer = UTTER_PRETOKENIZER_NATIVE;
    }
    utter_error error = {0};
    char found[PATH_MAX];
    int code = checkpoint_find(found, sizeof found, folder);
    if (code) {
        return code;
    }
    utter_status status = utter_model_open(model, found, &options, &error);
    return status ? fail_status(status, &error) : 0;
}

int checkpoint_lanes(const utter_model *model, int asked)
{
    enum { CPU_LANES = 4 }; /* more make a CPU no faster */
    utter_model_info info = checkpoint_info(model);
    int most = strcmp(info.device, "cpu") == 0 ? min(CPU_LANES, info.n_lanes) : info.n_lanes;
    return asked > 0 ? min(asked, info.n_lanes) : most;
}

utter_model_info checkpoint_info(const utter_model *model)
{
    utter_model_info info = {.size = sizeof info};
    utter_model_get_info(model, &info);
    return info;
}

static void apply_sampling(utter_stream_options *options, const struct settings *s)
{
    for (int i = 0; i < parameter_count; i++) {
        const struct parameter *p = &parameter_table[i];
        const struct setting *typed = &s->sampling[i];
        if (s->greedy.given && p->greedy) {
            parameter_set(p, options, 0);
        } else if (typed->given) {
            parameter_set(p, options, p->integer ? (double)typed->integer : typed->number);
        }
    }
}

int checkpoint_stream_options(utter_stream_options *options, utter_voice **voice,
    const utter_model *model, const struct settings *settings)
{
    *voice = NULL;
    for (int i = 0; i < parameter_count; i++) {
        const struct parameter *p = &parameter_table[i];
        if (settings->greedy.given && settings->sampling[i].given && p->greedy) {
            return fail(1, "--greedy: contradicts --%s (give one of them)", p->option);
        }
    }
    utter_error error = {0};
    utter_status status = utter_stream_options_init(options, model);
    if (status) {
        return fail_status(status, &error);
    }
    /* A model with preset voices was never trained to speak without one. */
    const char *name = settings->voice.text ? settings->voice.text : utter_model_voice_name(model, 0);
    if (name) {
        int code = voice_lookup(voice, model, settings, name);
        if (code) {
            return code;
        }
    }
    options->voice = *voice;
    options->language = settings->language.text;
    options->instruct = settings->instruct.text;
    const char *layout = settings->layout.text ? settings->layout.text : "auto";
    options->layout = strcmp(layout, "full") == 0     ? UTTER_LAYOUT_FULL
                      : strcmp(layout, "stream") == 0 ? UTTER_LAYOUT_STREAM
                                                      : UTTER_LAYOUT_AUTO;
    apply_sampling(options, settings);
    options->seed = settings->seed.integer;
    options->max_frames =
        settings->max_frames.given ? (int)settings->max_frames.integer : options->max_frames;
    options->guard = !settings->no_guard.given;
    /* checkpoint_info is asked last: each call foretells a GPU's speed anew, for a tenth of a millisecond. */
    if (!settings->instruct.text && !settings->quiet.given &&
        checkpoint_info(model).kind == UTTER_MODEL_VOICE_DESIGN) {
        note("a voice-design model speaks with the voice that --instruct describes; without it the "
             "voice is left to chance");
    }
    return 0;
}
