/* SPDX-License-Identifier: Apache-2.0
 * The vectors of rows: of each the sum of its text and its codec part, whatever rows come with it. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "cpu/stack/embed.h"
#include "tests/cpu/backend_run.h"

enum { N = 200, CODEBOOKS = 16 }; /* several times as many as are projected at once */

static int32_t codes[N * CODEBOOKS];

/* Rows of every kind, the first and the last text and code among them. */
static void make_mixture(const struct config *c, const float *vector, struct row *rows)
{
    const int32_t texts[] = {-1, 0, c->tts_pad, c->text_vocabulary - 1};
    for (int i = 0; i < N * CODEBOOKS; i++) {
        codes[i] = i * 7 % c->predictor_vocabulary;
    }
    for (int i = 0; i < N; i++) {
        rows[i] = (struct row){.text = i % 5 < 4 ? texts[i % 5] : i,
            .codec = i % 4 == 0   ? ROW_NONE
                     : i % 4 == 1 ? ROW_ID
                     : i % 4 == 2 ? ROW_VECTOR
                                  : ROW_CODES,
            .id = i % c->codec_vocabulary,
            .vector = vector,
            .codes = codes + (ptrdiff_t)i * CODEBOOKS};
    }
}

/* Adds what the tables have for the row, the codes of a frame summed first. */
static void add_codec(const struct model *model, const struct row *row, float *x, int width)
{
    float *sum = calloc((size_t)width, sizeof *sum), *one = calloc((size_t)width, sizeof *one);
    if (row->codec == ROW_ID) {
        weight_row(&model->talker.codec_embedding, row->id, sum);
    } else if (row->codec == ROW_VECTOR) {
        memcpy(sum, row->vector, (size_t)width * sizeof *sum);
    }
    for (int j = 0; row->codec == ROW_CODES && j < CODEBOOKS; j++) {
        weight_row(j == 0 ? &model->talker.codec_embedding : &model->predictor.embedding[j - 1],
            row->codes[j], one);
        for (int i = 0; i < width; i++) {
            sum[i] = j == 0 ? one[i] : sum[i] + one[i];
        }
    }
    for (int i = 0; i < width; i++) {
        x[i] += sum[i];
    }
    free(sum);
    free(one);
}

static bool is_zero(const float *x, int width)
{
    bool zero = true;
    for (int i = 0; i < width; i++) {
        zero = zero && x[i] == 0;
    }
    return zero;
}

static void a_row_is_its_text_and_its_codes(void **state)
{
    struct model *model = open_model(MODEL);
    struct pool *pool = pool_new(1);
    struct cpu_embed embed;
    struct row rows[N];
    const int width = model->config->talker.width;
    float *together = malloc((size_t)N * (size_t)width * sizeof *together),
          *alone = malloc((size_t)width * sizeof *alone),
          *vector = malloc((size_t)width * sizeof *vector);
    (void)state;
    for (int i = 0; i < width; i++) {
        vector[i] = 0.01f * (float)(i % 9 - 4);
    }
    make_mixture(model->config, vector, rows);
    assert_int_equal(cpu_embed_init(&embed, model, kern_find("c"), pool, N, NULL), UTTER_OK);
    cpu_embed_rows(&embed, rows, N, together);
    for (int i = 0; i < N; i++) {
        const struct row text = {.text = rows[i].text};
        cpu_embed_rows(&embed, &text, 1, alone);
        assert_int_equal(is_zero(alone, width), rows[i].text < 0);
        add_codec(model, &rows[i], alone, width);
        assert_memory_equal(together + (ptrdiff_t)i * width, alone, (size_t)width * sizeof *alone);
    }
    free(together);
    free(alone);
    free(vector);
    cpu_embed_fini(&embed);
    pool_free(pool);
    model_close(&model);
}

static void memory_that_is_missing_is_told(void **state)
{
    struct model *model = open_model(MODEL);
    struct pool *pool = pool_new(1);
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct cpu_embed embed;
        const utter_status status = cpu_embed_init(&embed, model, kern_find("c"), pool, 4, NULL);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        cpu_embed_fini(&embed);
    }
    pool_free(pool);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_its_text_and_its_codes),
        cmocka_unit_test(memory_that_is_missing_is_told),
    };
    return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
