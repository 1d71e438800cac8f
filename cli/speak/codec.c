/* SPDX-License-Identifier: Apache-2.0
 * utter codec decode and encode: codes in, sound out, and the other way. */
#include <stdlib.h>
#include <string.h>

#include "cli/interrupt.h"
#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/speak/codes_file.h"
#include "cli/speak/output.h"
#include "cli/voice/long_work.h"

struct decoding {
    struct output output;
    int code; /* of a write that failed */
};

static bool take_samples(void *user, const float *pcm, size_t n)
{
    struct decoding *decoding = user;
    decoding->code = output_write(&decoding->output, pcm, n);
    return decoding->code == 0 && interrupt_signal() == 0;
}

static int decode(
    utter_model *model, const int32_t *codes, size_t n_frames, const struct settings *settings)
{
    struct decoding decoding = {0};
    utter_codec_rule rule =
        strcmp(settings->rule.text, "official") == 0 ? UTTER_CODEC_OFFICIAL_CHUNKS : UTTER_CODEC_WHOLE;
    int code = interrupt_watch(NULL) ? 0 : fail(2, "the system refuses a signal handler");
    if (code == 0) {
        code = output_open(&decoding.output, settings, true, checkpoint_info(model).sample_rate);
    }
    if (code == 0) {
        utter_error error = {0};
        utter_status status = utter_codec_decode(model, codes, n_frames, rule,
            (int)settings->chunk.integer, take_samples, &decoding, &error);
        code = decoding.code        ? decoding.code
               : interrupt_signal() ? fail(128 + interrupt_signal(), "interrupted")
               : status             ? fail_status(status, &error)
                                    : 0;
    }
    if (code == 0) {
        code = output_close(&decoding.output, true);
    }
    if (code == 0 && !settings->output.given && !settings->quiet.given && decoding.output.path) {
        note("%zu samples are in %s", decoding.output.n_samples, decoding.output.path);
    }
    output_abort(&decoding.output);
    return code;
}

int command_codec_decode(const struct invocation *invocation)
{
    utter_model *model = NULL;
    int32_t *codes = NULL;
    size_t n_frames = 0;
    int code = checkpoint_open(&model, &invocation->settings, 1);
    if (code == 0) {
        utter_model_info info = checkpoint_info(model);
        code = codes_file_read(
            &codes, &n_frames, invocation->words[0], info.n_codebooks, info.codebook_size);
    }
    if (code == 0) {
        code = decode(model, codes, n_frames, &invocation->settings);
    }
    free(codes);
    utter_model_close(&model);
    return code;
}

static int encode(utter_model *model, const char *sound, const struct settings *settings)
{
    struct long_work work;
    struct codes_file out = {0};
    int32_t *codes = NULL;
    size_t n_frames = 0;
    utter_error error = {0};
    int code = long_work_begin(&work, "encoding", settings);
    code = code ? code
                : codes_file_open(&out, settings->output.given ? settings->output.text : "-",
                      checkpoint_info(model).n_codebooks);
    if (code) {
        return code;
    }
    report_alone();
    utter_status status =
        utter_codec_encode(model, sound, &codes, &n_frames, long_work_progress, &work, &error);
    report_with_others();
    if ((code = long_work_end(status, &error)) == 0) {
        codes_file_add(&out, codes, n_frames);
        code = codes_file_finish(&out, UTTER_FINISH_EOS); /* the recording ended by itself */
    }
    codes_file_abort(&out);
    utter_memory_free(codes);
    return code;
}

int command_codec_encode(const struct invocation *invocation)
{
    utter_model *model = NULL;
    int code = checkpoint_open(&model, &invocation->settings, 1);
    if (code == 0) {
        code = encode(model, invocation->words[0], &invocation->settings);
    }
    utter_model_close(&model);
    return code;
}
