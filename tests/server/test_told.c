/* SPDX-License-Identifier: Apache-2.0
 * Words on their way from the worker to a client: the message, what is new of them, each told once or twice; what of a
 * text was heard. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "server/front/heard.h"
#include "server/protocol/wire.h"
#include "server/sound/encode.h"
#include "server/speech/words.h"
#include "server/worker/told.h"

static utter_word word_of(uint64_t at, uint64_t bytes, uint64_t start, bool final)
{
    return (utter_word){.at = at,
        .bytes = bytes,
        .start = start,
        .end = start + 100,
        .certainty = 0.5F,
        .final = final};
}

/* The message at `at` of what was written; *at moves behind it. */
static bool next_words(const struct wire_out *out, size_t *at, struct wire_words *words)
{
    struct wire_message m;
    size_t used;
    if (wire_read(&m, out->bytes + *at, out->n - *at, &used) != WIRE_MESSAGE) {
        return false;
    }
    *at += used;
    return m.kind == WIRE_WORDS && m.id == 7 && wire_get_words(words, &m);
}

static void words_go_over_the_wire(void **state)
{
    utter_word two[] = {word_of(3, 5, 1920, true), word_of(UINT64_MAX, 1, UINT64_MAX - 100, false)};
    struct wire_out out = {0};
    struct wire_words got;
    size_t at = 0;
    (void)state;
    two[1].skipped = true;
    wire_put_words(&out, 7, 40, two, 2, true);
    assert_true(next_words(&out, &at, &got));
    assert_true(got.first == 40 && got.n == 2 && got.approximate && at == out.n);
    for (size_t i = 0; i < 2; i++) {
        const utter_word w = wire_word(&got, i);
        assert_true(w.at == two[i].at && w.bytes == two[i].bytes && w.start == two[i].start);
        assert_true(w.end == two[i].end && w.final == two[i].final && w.skipped == !two[i].final &&
                    w.certainty >= 0.5F);
    }
    /* A body that is cut, or has a byte too many, is no message. */
    for (size_t n = 0; n <= out.n - WIRE_HEADER_BYTES + 1; n++) {
        uint8_t body[128];
        memcpy(body, out.bytes + WIRE_HEADER_BYTES, out.n - WIRE_HEADER_BYTES);
        const struct wire_message m = {WIRE_WORDS, 7, body, n};
        size_t left = n - 9;
        assert_int_equal(wire_get_words(&got, &m), n >= 9 && left % 42 == 0);
    }
    wire_fini(&out);
    /* So many that one message does not hold them. */
    size_t n = WIRE_MAX_WORDS + 3;
    utter_word *many = test_calloc(n, sizeof *many);
    for (size_t i = 0; i < n; i++) {
        many[i] = word_of(i, 1, i, true);
    }
    wire_put_words(&out, 7, 5, many, n, false);
    assert_false(out.failed);
    at = 0;
    assert_true(next_words(&out, &at, &got) && got.n == WIRE_MAX_WORDS && got.first == 5);
    assert_true(next_words(&out, &at, &got) && got.n == 3 && got.first == 5 + WIRE_MAX_WORDS);
    assert_int_equal(wire_word(&got, 2).at, n - 1);
    assert_int_equal(at, out.n);
    wire_fini(&out);
    test_free(many);
}

static void only_what_is_new_is_told(void **state)
{
    utter_word words[] = {
        word_of(0, 3, 0, false), word_of(4, 3, 200, false), word_of(8, 3, 400, false)};
    struct told told = {0};
    struct wire_out out = {0};
    struct wire_words got;
    size_t at = 0;
    (void)state;
    told_put(&told, 7, words, 0, 0, false, &out);
    assert_int_equal(out.n, 0);
    told_put(&told, 7, words, 0, 2, false, &out);
    assert_true(next_words(&out, &at, &got) && got.first == 0 && got.n == 2);
    told_put(&told, 7, words, 0, 2, false, &out); /* nothing new */
    assert_int_equal(at, out.n);
    words[1].start = 210;
    told_put(&told, 7, words, 0, 3, false, &out); /* from the one that changed on */
    assert_true(next_words(&out, &at, &got) && got.first == 1 && got.n == 2);
    told_put(&told, 7, words, 0, 2, false, &out); /* the last one has gone */
    assert_true(next_words(&out, &at, &got) && got.first == 2 && got.n == 0);
    words[0].final = words[1].final = true;
    told_put(&told, 7, words, 0, 3, false, &out); /* two have ended */
    assert_true(next_words(&out, &at, &got) && got.first == 0 && got.n == 3);
    told_put(&told, 7, words + 2, 2, 1, false, &out); /* and come no more */
    assert_int_equal(at, out.n);
    told_fini(&told);
    wire_fini(&out);
}

static const char text[] = "Hello there, my über-friend.";

static struct speech_word said(size_t at, size_t bytes, double start_s, bool final)
{
    return (struct speech_word){at, bytes, start_s, start_s + 0.2, 1, final, false};
}

static void take(
    struct word_list *l, uint64_t first, const struct speech_word *at, size_t n, bool approximate)
{
    const struct speech_words words = {first, at, n, approximate};
    word_list_take(l, &words);
}

/* "index word final|..." */
static const char *news(struct word_list *l)
{
    static char out[400];
    json_t *list = word_list_news(l, text, strlen(text)), *each;
    size_t i;
    out[0] = 0;
    json_array_foreach(list, i, each)
    {
        char one[80];
        snprintf(one, sizeof one, "%d %s%s|", (int)json_integer_value(json_object_get(each, "index")),
            json_string_value(json_object_get(each, "word")),
            json_is_true(json_object_get(each, "final")) ? " final" : "");
        strcat(out, one);
    }
    json_decref(list);
    return out;
}

static void a_word_is_told_when_it_begins_and_when_it_is_final(void **state)
{
    struct speech_word words[] = {
        said(0, 5, 0, false), said(6, 5, 0.5, false), said(13, 2, 1, false), said(16, 5, 1.5, false)};
    struct word_list l = {0}, once = {0};
    (void)state;
    take(&l, 0, words, 1, false);
    assert_string_equal(news(&l), "0 Hello|");
    take(&l, 0, words, 2, false);
    assert_string_equal(news(&l), "1 there|");
    assert_string_equal(news(&l), "");
    words[0].final = true;
    take(&l, 0, words, 4, true);
    assert_true(l.approximate);
    assert_string_equal(news(&l), "0 Hello final|2 my|3 über|");
    word_list_forget(
        &l, l.n_final); /* what is known and final goes; later messages may still begin there */
    assert_int_equal(l.first, 1);
    words[1].final = words[2].final = words[3].final = true;
    take(&l, 0, words, 4, false);
    assert_string_equal(news(&l), "1 there final|2 my final|3 über final|");
    word_list_next(&l, strlen(text), 3);
    take(&l, 0, words, 1, false);
    assert_true(l.at[l.n - 1].at == strlen(text) && fabs(l.at[l.n - 1].start_s - 3) < 1e-9);
    word_list_fini(&l);
    /* Who tells each word once. */
    take(&once, 0, words, 1, false); /* final */
    assert_int_equal(word_list_due(&once, 0), 1);
    words[0].final = words[1].final = words[2].final = words[3].final = false;
    take(&once, 0, words, 1, false);
    assert_int_equal(word_list_due(&once, 9), 0); /* where it ends cannot be seen */
    take(&once, 0, words, 4, false);
    assert_int_equal(word_list_due(&once, 0.4), 1);
    assert_int_equal(word_list_due(&once, 1.1), 3);
    once.n_told = 2;
    word_list_forget(&once, 2);
    assert_int_equal(word_list_due(&once, 1.1), 1);
    take(&once, 0, words, 1, false); /* they end among those that are forgotten: nothing is left */
    assert_int_equal(once.n, 0);
    take(&once, 0, words, 4, false);
    assert_true(once.first == 2 && once.n == 2 && once.at[0].at == 13);
    word_list_fini(&once);
}

static void what_no_worker_says_does_no_harm(void **state)
{
    const struct speech_word odd[] = {said(SIZE_MAX, SIZE_MAX, 1e18, true), said(17, 1, 1, true)};
    struct word_list l = {0};
    (void)state;
    take(&l, 5, odd, 2, false); /* a gap */
    assert_int_equal(l.n, 0);
    take(&l, 0, odd, 2, false);
    assert_string_equal(news(&l), "0  final|1  final|"); /* beyond the text; half of a letter */
    assert_true(word_list_heard(&l, text, strlen(text), 5) <= strlen(text));
    word_list_fini(&l);
}

static void what_was_heard_is_told(void **state)
{
    const struct speech_word words[] = {said(0, 5, 0.1, true), said(6, 5, 0.5, true),
        said(13, 2, 1, true), said(6, 5, 1.2, true) /* said again */, said(16, 5, 1.5, true),
        said(22, 6, 2, true)};
    struct word_list l = {0};
    size_t n = strlen(text);
    (void)state;
    assert_int_equal(word_list_heard(&l, text, n, 1), 0);
    take(&l, 0, words, 6, false);
    assert_int_equal(word_list_heard(&l, text, n, 0.1), 0);
    assert_int_equal(word_list_heard(&l, text, n, 0.2), 5);
    assert_int_equal(word_list_heard(&l, text, n, 0.6), 12); /* with the mark behind it */
    assert_int_equal(word_list_heard(&l, text, n, 1.4), 15);
    assert_int_equal(
        word_list_heard(&l, text, n, 1.6), 22); /* up to the next word, where nothing is white */
    assert_int_equal(word_list_heard(&l, text, n, 9), n);
    word_list_fini(&l);
    assert_int_equal(words_share("one two three", 13, 0, 1.3), 0);
    assert_int_equal(words_share("one two three", 13, 0.1, 1.3), 3);
    assert_int_equal(words_share("one two three", 13, 0.5, 1.3), 7);
    assert_int_equal(words_share("one two three", 13, 9, 1.3), 13);
}

static void an_utterance_is_split(void **state)
{
    const struct speech_word words[] = {said(0, 5, 0.1, true), said(6, 5, 0.5, true)};
    struct wire_out rest = {0};
    struct heard h = {0};
    (void)state;
    heard_begin(&h, 4);
    wire_put(&h.text, "Hello there. ", 13);
    wire_put(&rest, "And more.", 9);
    take(&h.words, 0, words, 2, false);
    for (int i = 0; i < 2; i++) {
        json_t *answer = json_object();
        h.has_words = i == 0;
        heard_split(&h, answer, 0.2, 1, &rest);
        assert_string_equal(json_string_value(json_object_get(answer, "text_spoken")), "Hello");
        assert_string_equal(
            json_string_value(json_object_get(answer, "text_remaining")), " there. And more.");
        assert_int_equal(json_integer_value(json_object_get(answer, "heard_utterance_index")), 4);
        assert_int_equal(json_is_true(json_object_get(answer, "approximate")), i);
        json_decref(answer);
    }
    wire_fini(&rest);
    heard_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_go_over_the_wire),
        cmocka_unit_test(only_what_is_new_is_told),
        cmocka_unit_test(a_word_is_told_when_it_begins_and_when_it_is_final),
        cmocka_unit_test(what_no_worker_says_does_no_harm),
        cmocka_unit_test(what_was_heard_is_told),
        cmocka_unit_test(an_utterance_is_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
