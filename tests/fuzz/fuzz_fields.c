/* SPDX-License-Identifier: Apache-2.0
 * Any JSON as the fields of a speech: values within their ranges, or a refusal that says why. Any text as what is cut
 * into sentences. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/front/sentence.h"
#include "server/speech/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const struct fields *f)
{
    /* 0 where it is not asked for. */
    const int least_frames = json_is_integer(json_object_get(f->object, "max_new_tokens")) ? 1 : 0;
    bool ranged = f->sound.speed >= 0.25 && f->sound.speed <= 4 && f->sound.volume >= 0 &&
                  f->sound.volume <= 4 &&
                  (f->sound.sample_rate == 0 ||
                      (f->sound.sample_rate >= 8000 && f->sound.sample_rate <= 48000)) &&
                  f->max_frames >= least_frames && f->max_frames <= FIELDS_MAX_FRAMES;
    for (int i = 0; i < parameter_count; i++) {
        const struct parameter *p = &parameter_table[i];
        bool own = p->integer ? f->sampling[i] == -1 : isnan(f->sampling[i]);
        ranged =
            ranged && (own || (f->sampling[i] >= p->least_json && f->sampling[i] <= p->most_asked));
    }
    if (!ranged || (f->input && f->input_chars > FIELDS_MAX_INPUT)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const languages[] = {"english", "chinese"};
    static const char *const kinds[] = {"custom_voice", "base", "voice_design"};
    json_t *root = NULL;
    if (sentence_bytes((const char *)data, bytes, bytes % 2) > bytes) {
        abort();
    }
    if (json_text(&root, (const char *)data, bytes, JSON_SMALL, "fuzz", NULL) != UTTER_OK) {
        return 0;
    }
    int i =
        (int)(bytes %
              6); /* one kind of model and of use an input: many inputs a second find more than six looks */
    struct fields_model model = {"m", kinds[i % 3], languages, 2, i == 2, ENCODE_MP3};
    struct fields f;
    struct refusal refusal = {0};
    if (fields_parse(&f, root, NULL, (enum fields_for)(i / 3), &model, &refusal)) {
        check(&f);
    } else if (refusal.status < 400 || !refusal.message[0] || strchr(refusal.message, '\n')) {
        abort();
    }
    fields_fini(&f);
    json_decref(root);
    return 0;
}
