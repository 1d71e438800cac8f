/* SPDX-License-Identifier: Apache-2.0
 * utter quantize: a checkpoint folder in, one packed file out. */
#include <string.h>
#include <sys/stat.h>

#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/speak/output.h"
#include "cli/voice/long_work.h"

int command_quantize(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    const char *folder = checkpoint_folder(s);
    if (!folder) {
        return 1;
    }
    if (!s->output.given || strcmp(s->output.text, "-") == 0) {
        return fail(1, "quantize: no file to write (-o FILE; it is read back by its name, so not -)");
    }
    if (!s->weights.given) {
        return fail(1, "quantize: how many bits is not said (--weights q8 or --weights q4)");
    }
    utter_weights weights = strcmp(s->weights.text, "q8") == 0 ? UTTER_WEIGHTS_Q8 : UTTER_WEIGHTS_Q4;
    int code = output_check(s->output.text);
    if (code) {
        return code;
    }
    struct long_work work;
    if ((code = long_work_begin(&work, "packing", s))) {
        return code;
    }
    utter_error error = {0};
    utter_status status =
        utter_model_quantize_told(folder, weights, s->output.text, long_work_progress, &work, &error);
    if (status) {
        return long_work_end(status, &error);
    }
    progress_clear(); /* a signal that came while the file got its name is too late */
    struct stat about;
    if (!s->quiet.given && stat(s->output.text, &about) == 0) {
        note("%s holds the model, %.1f MB (utter say -m %s ...); embeddings and encoders stay as they "
             "were",
            s->output.text, 1e-6 * (double)about.st_size, s->output.text);
    }
    return 0;
}
