/* SPDX-License-Identifier: Apache-2.0
 * Bodies of messages are exactly what they should be: one byte more or less, or without what each has to have, and none
 * of it is taken. */
#include "tests/support.h"

#include <string.h>

#include "server/protocol/wire.h"

static struct wire_message message_of(const struct wire_out *out)
{
    struct wire_message m;
    size_t used;
    assert_false(out->failed);
    assert_int_equal(wire_read(&m, out->bytes, out->n, &used), WIRE_MESSAGE);
    assert_int_equal(used, out->n);
    return m;
}

static bool is_hello(const struct wire_message *m)
{
    struct wire_hello hello;
    return wire_get_hello(&hello, m);
}

static bool is_open(const struct wire_message *m)
{
    struct wire_open open;
    return wire_get_open(&open, m);
}

static bool is_ready(const struct wire_message *m)
{
    struct wire_ready ready;
    return wire_get_ready(&ready, m);
}

static bool is_done(const struct wire_message *m)
{
    struct wire_done done;
    return wire_get_done(&done, m);
}

static bool is_failed(const struct wire_message *m)
{
    struct wire_failed failed;
    return wire_get_failed(&failed, m);
}

static bool is_beat(const struct wire_message *m)
{
    struct wire_beat beat;
    return wire_get_beat(&beat, m);
}

static bool is_kernels(const struct wire_message *m)
{
    return wire_get_kernels(m) != NULL;
}

/* The message that is there, and no other length of it. */
static void expect_exact(struct wire_out *out, bool (*is)(const struct wire_message *m))
{
    const uint8_t more[2] = {0};
    struct wire_message m = message_of(out);
    const size_t n = m.bytes;
    assert_true(is(&m));
    wire_put(out, more, sizeof more);
    m.body = out->bytes + WIRE_HEADER_BYTES;
    for (m.bytes = 0; m.bytes <= n + 2; m.bytes++) {
        if (is(&m) != (m.bytes == n)) {
            fail_msg("%zu bytes, not %zu", m.bytes, n);
        }
    }
    wire_fini(out);
}

static struct wire_ready usual_ready(void)
{
    return (struct wire_ready){.kind_name = "base",
        .size_name = "0b6",
        .device = "cpu",
        .kernels = "plain",
        .weights = "bf16",
        .sample_rate = 24000,
        .frame_samples = 1920,
        .lanes = 1};
}

static void bodies_have_one_length(void **state)
{
    const struct wire_hello hello = {.model = "m", .device = "cpu", .cache = "c"};
    const struct wire_open open = {.voice_name = "v", .instruct = "low"};
    struct wire_ready ready = usual_ready();
    const struct wire_done done = {.finish = UTTER_FINISH_EOS, .n_frames = 3};
    const struct wire_beat beat = {.capacity = 4};
    ready.voices[0] = ready.languages[0] = "v";
    ready.n_voices = ready.n_languages = 1;
    struct wire_out out = {0};
    (void)state;
    wire_put_hello(&out, &hello);
    expect_exact(&out, is_hello);
    wire_put_open(&out, 1, &open);
    expect_exact(&out, is_open);
    wire_put_ready(&out, &ready);
    expect_exact(&out, is_ready);
    wire_put_done(&out, 1, &done);
    expect_exact(&out, is_done);
    wire_put_failed(&out, 1, UTTER_E_MEMORY, "why");
    expect_exact(&out, is_failed);
    wire_put_refused(&out, UTTER_E_MEMORY, "why");
    expect_exact(&out, is_failed);
    wire_put_beat(&out, &beat);
    expect_exact(&out, is_beat);
    wire_put_kernels(&out, "plain");
    expect_exact(&out, is_kernels);
}

/* A string that may not be missing is missing. */
static void what_a_body_must_have_is_there(void **state)
{
    const struct wire_hello hellos[] = {{.device = "cpu"}, {.model = "m"}};
    struct wire_out out = {0};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        wire_put_hello(&out, &hellos[i]);
        const struct wire_message m = message_of(&out);
        assert_false(is_hello(&m));
        wire_fini(&out);
    }
    for (int i = 0; i < 6; i++) {
        struct wire_ready ready = usual_ready();
        const char **strings[] = {
            &ready.kind_name, &ready.size_name, &ready.device, &ready.kernels, &ready.weights};
        if (i < 5) {
            *strings[i] = NULL;
        }
        wire_put_ready(&out, &ready);
        const struct wire_message m = message_of(&out);
        assert_int_equal(is_ready(&m), i == 5);
        wire_fini(&out);
    }
    wire_put_failed(&out, 1, UTTER_E_MEMORY, NULL);
    struct wire_message m = message_of(&out);
    assert_false(is_failed(&m));
    wire_fini(&out);
    wire_put_kernels(&out, NULL);
    m = message_of(&out);
    assert_false(is_kernels(&m));
    wire_fini(&out);
}

/* The first and the last that is taken, and those beside them. */
static void numbers_of_bodies_have_bounds(void **state)
{
    static const struct {
        int rate, frame, lanes;
        bool good;
    } readies[] = {{8000, 1, 1, true}, {7999, 1, 1, false}, {192000, 192000, 4096, true},
        {192001, 1, 1, false}, {8000, 0, 1, false}, {8000, 192001, 1, false}, {8000, 1, 0, false},
        {8000, 1, 4097, false}};
    const struct {
        struct wire_done done;
        bool good;
    } ends[] = {{{.finish = UTTER_FINISH_NONE + 1}, true}, {{.finish = UTTER_FINISH_NONE}, false},
        {{.finish = UTTER_FINISH_ERROR}, true}, {{.finish = UTTER_FINISH_ERROR + 1}, false},
        {{.finish = UTTER_FINISH_EOS, .n_frames = -1}, false},
        {{.finish = UTTER_FINISH_EOS, .n_text_tokens = -1}, false},
        {{.finish = UTTER_FINISH_EOS, .n_pieces = -1}, false},
        {{.finish = UTTER_FINISH_EOS, .n_retries = -1}, false},
        {{.finish = UTTER_FINISH_EOS, .n_broken = -1}, false}};
    struct wire_out out = {0};
    struct wire_message m;
    (void)state;
    for (size_t i = 0; i < sizeof readies / sizeof *readies; i++) {
        struct wire_ready ready = usual_ready();
        ready.sample_rate = readies[i].rate;
        ready.frame_samples = readies[i].frame;
        ready.lanes = readies[i].lanes;
        wire_put_ready(&out, &ready);
        m = message_of(&out);
        assert_int_equal(is_ready(&m), readies[i].good);
        wire_fini(&out);
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        wire_put_done(&out, 1, &ends[i].done);
        m = message_of(&out);
        assert_int_equal(is_done(&m), ends[i].good);
        wire_fini(&out);
    }
    for (int capacity = 0; capacity < 2; capacity++) {
        const struct wire_beat beat = {.capacity = capacity};
        wire_put_beat(&out, &beat);
        m = message_of(&out);
        assert_int_equal(is_beat(&m), capacity);
        wire_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_have_one_length),
        cmocka_unit_test(what_a_body_must_have_is_there),
        cmocka_unit_test(numbers_of_bodies_have_bounds),
    };
    return cmocka_run_group_tests_name("wire_bodies", tests, NULL, NULL);
}
