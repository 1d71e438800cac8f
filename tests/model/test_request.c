/* SPDX-License-Identifier: Apache-2.0
 * What every backend refuses, where no model is needed for it. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "model/request.h"

/* Each convolution wants one frame more than it reaches. */
static void short_recordings_have_no_speaker(void **state)
{
    char kind[] = "base";
    struct config config = {
        .kind_name = kind, .speaker = {.n_blocks = 3, .taps = {5, 3, 3}, .dilations = {1, 2, 1}}};
    struct model model = {.config = &config, .has_speaker = true};
    utter_error error = {0};
    (void)state;
    for (int longest = 0; longest < 3; longest++) {
        config.speaker.dilations[longest] = 4;
        const size_t reach = (size_t)(config.speaker.taps[longest] / 2) * 4;
        char wanted[64];
        snprintf(wanted, sizeof wanted, "which needs %zu", reach + 1);
        assert_int_equal(request_speaker(&model, reach + 1, &error), UTTER_OK);
        assert_int_equal(request_speaker(&model, reach, &error), UTTER_E_ARGUMENT);
        assert_non_null(strstr(error.text, wanted));
        config.speaker.dilations[longest] = 1;
    }
    model.has_speaker = false;
    assert_int_equal(request_speaker(&model, 100, &error), UTTER_E_MODEL);
    assert_non_null(strstr(error.text, "no speaker encoder"));
}

/* Frames that are known already, a few at a time, each of codes that there are. */
static void known_codes_are_looked_at(void **state)
{
    enum { CODEBOOKS = 3, CODES = 40, MOST = BACKEND_MAX_FEED };
    const struct config config = {
        .n_codebooks = CODEBOOKS, .predictor_vocabulary = CODES, .codec.codebook_size = CODES};
    int32_t codes[(MOST + 1) * CODEBOOKS] = {0};
    utter_error error = {.text = ""};
    char wanted[100];
    (void)state;
    assert_int_equal(request_feed(&config, codes, 1, &error), UTTER_OK);
    assert_int_equal(request_feed(&config, codes, MOST, &error), UTTER_OK);
    for (int n = 0; n <= MOST + 1; n += MOST + 1) {
        snprintf(wanted, sizeof wanted, "%d frames of known codes: 1 to %d, each code below %d", n,
            MOST, CODES);
        assert_int_equal(request_feed(&config, codes, n, &error), UTTER_E_ARGUMENT);
        assert_string_equal(error.text, wanted);
    }
    for (size_t i = 0; i < 2 * CODEBOOKS; i++) {
        codes[i] = CODES - 1;
        assert_int_equal(request_feed(&config, codes, 2, &error), UTTER_OK);
        codes[i] = CODES;
        assert_int_equal(request_feed(&config, codes, 2, &error), UTTER_E_ARGUMENT);
        codes[i] = -1;
        assert_int_equal(request_feed(&config, codes, 2, &error), UTTER_E_ARGUMENT);
        codes[i] = 0;
    }
    codes[2 * CODEBOOKS] = CODES; /* behind what is asked for */
    assert_int_equal(request_feed(&config, codes, 2, &error), UTTER_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_recordings_have_no_speaker),
        cmocka_unit_test(known_codes_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
