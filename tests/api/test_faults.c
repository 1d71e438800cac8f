/* SPDX-License-Identifier: Apache-2.0
 * Every allocation and every file call along the path open, clone, say, save, load fails in its turn, once and for
 * good. Each call of the library then tells a status and a reason, or succeeds and has done all of it; of memory,
 * descriptors and mapped files nothing stays behind, and the same call without a fault does what it always does.
 * `make check` tries one point of so many in each stage; EVERY=1 tries all of them (`make check-faults`). */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/heap.h"
#include "utter.h"

#define BASE "build/checkpoints/tiny06-base"

enum { N_SAMPLES = 25000, FRAMES = 3, SLACK = 64 << 10 };

/* What the stages work with; a stage makes one thing anew. */
static struct {
    utter_model *model;
    utter_voice *voice;
    float sound[N_SAMPLES];
    uint64_t said; /* what was said without a fault, as one number */
    bool fault;    /* a call failed, and the stage took the faults away to look at what came of it */
    char path[512];
    char *saved, *other; /* the file of the voice, and the one that is there before: another voice's */
    size_t saved_bytes, other_bytes;
} world;

static utter_status open_model(utter_model **model, utter_error *error)
{
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 1;
    o.device = "cpu";
    return utter_model_open(model, BASE, &o, error);
}

static utter_status stage_open(utter_error *error)
{
    utter_model *model;
    utter_status status = open_model(&model, error);
    assert_true((status == UTTER_OK) == (model != NULL));
    utter_model_close(&model);
    return status;
}

/* From here on nothing fails. */
static void end_faults(void)
{
    world.fault |= support_failed();
    support_fail_off();
}

static utter_status clone(utter_voice **voice, const char *transcript, utter_error *error)
{
    utter_clone_options o;
    utter_clone_options_init(&o);
    o.transcript = transcript;
    return utter_voice_clone_samples(voice, world.model, world.sound, N_SAMPLES, &o, error);
}

static utter_status read_all(utter_stream *stream, uint64_t *sum, utter_error *error)
{
    float pcm[1920];
    size_t n;
    utter_status status;
    while ((status = utter_stream_read(stream, pcm, 1920, &n, error)) == UTTER_OK) {
        for (size_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &pcm[i], sizeof bits);
            *sum = (*sum ^ bits) * 0x100000001b3u;
        }
    }
    return status == UTTER_END ? UTTER_OK : status;
}

/* With a fault it fails, or says what it says without one. */
static utter_status say(const utter_voice *voice, utter_error *error)
{
    static const char text[] = "All of it, and more.";
    utter_stream *stream = NULL;
    utter_stream_options o;
    uint64_t sum = 0;
    assert_int_equal(utter_stream_options_init(&o, world.model), UTTER_OK);
    o.voice = voice;
    o.max_frames = FRAMES;
    o.words = true;
    utter_status status = utter_stream_open(&stream, world.model, &o, error);
    assert_true((status == UTTER_OK) == (stream != NULL));
    status = status ? status : utter_stream_text(stream, text, sizeof text - 1, error);
    status = status ? status : utter_stream_finish(stream, error);
    status = status ? status : read_all(stream, &sum, error);
    utter_stream_free(&stream);
    if (status == UTTER_OK) {
        world.said = world.said ? world.said : sum;
        assert_true(sum == world.said);
    }
    return status;
}

static utter_status stage_say(utter_error *error)
{
    return say(world.voice, error);
}

/* A voice that was made in spite of a fault speaks as any. */
static utter_status stage_clone(utter_error *error)
{
    utter_voice *voice;
    utter_status status = clone(&voice, "Hello.", error);
    assert_true((status == UTTER_OK) == (voice != NULL));
    if (status == UTTER_OK) {
        end_faults();
        assert_int_equal(say(voice, NULL), UTTER_OK);
    }
    utter_voice_free(&voice);
    return status;
}

static utter_status load(utter_error *error)
{
    utter_voice *voice;
    utter_status status = utter_voice_load(&voice, world.path, error);
    assert_true((status == UTTER_OK) == (voice != NULL));
    utter_voice_free(&voice);
    return status;
}

static bool is_file(const char *data, size_t bytes)
{
    size_t n;
    char *file = support_read_file(world.path, &n);
    bool same = file && n == bytes && memcmp(file, data, n) == 0;
    free(file);
    return same;
}

/* Whatever happens the file is whole: the one that was there before, or, and always where it is said, the new one. */
static utter_status stage_save(utter_error *error)
{
    utter_status status = utter_voice_save(world.voice, world.path, error);
    end_faults();
    assert_true(is_file(world.saved, world.saved_bytes) ||
                (status != UTTER_OK && is_file(world.other, world.other_bytes)));
    assert_int_equal(support_count_files(support_path("voices")), 1);
    support_write_file(world.path, world.other, world.other_bytes);
    return status;
}

static utter_status stage_load(utter_error *error)
{
    return load(error);
}

/* The stage without a fault. */
static void succeed(utter_status (*stage)(utter_error *error))
{
    utter_error error = {.text = ""};
    if (stage(&error) != UTTER_OK) {
        fail_msg("without a fault: %s", error.text);
    }
}

/* The stage with each `every`-th call of this kind failing; returns how many points that were. */
static long fail_each(
    utter_status (*stage)(utter_error *error), enum support_call call, bool for_good, long every)
{
    long n_points = 0;
    bool failed = true;
    for (long n = 1; failed; n += every) {
        utter_error error = {.text = ""};
        world.fault = false;
        for_good ? support_fail_from(call, n) : support_fail_at(call, n);
        utter_status status = stage(&error);
        end_faults();
        failed = world.fault;
        assert_true(failed || status == UTTER_OK);
        assert_true(status == UTTER_OK || error.text[0]);
        assert_true(call != SUPPORT_MALLOC || status == UTTER_OK || status == UTTER_E_MEMORY);
        n_points += failed;
        if (n_points % 16 == 1) { /* the next request */
            succeed(stage);
        }
    }
    return n_points;
}

static const struct {
    const char *name;
    utter_status (*run)(utter_error *error);
    long every; /* in `make check` */
} stages[] = {{"open", stage_open, SUPPORT_SANITIZED ? 679 : 97}, {"clone", stage_clone, 17},
    {"say", stage_say, 17}, {"save", stage_save, 17}, {"load", stage_load, 17}};

struct held {
    size_t heap;
    int descriptors, mappings; /* of files */
};

static struct held look_at_held(void)
{
    char line[5000];
    struct held h = {0};
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        h.mappings += strchr(line, '/') != NULL;
    }
    fclose(maps);
    h.descriptors = support_count_files("/proc/self/fd");
    h.heap = heap_used();
    return h;
}

static void check_held(const char *stage, const struct held *before)
{
    const struct held now = look_at_held();
    if (now.heap > before->heap + SLACK || now.descriptors != before->descriptors ||
        now.mappings != before->mappings) {
        fail_msg("%s: of the heap %zu bytes before and %zu behind, of descriptors %d and %d, of "
                 "mapped files %d and %d",
            stage, before->heap, now.heap, before->descriptors, now.descriptors, before->mappings,
            now.mappings);
    }
}

static void each(bool heap)
{
    const char *asked = getenv("EVERY");
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        long every = asked ? atol(asked) : stages[i].every, n = 0;
        succeed(stages[i].run); /* what is made once is there */
        const struct held before = look_at_held();
        for (int call = heap ? SUPPORT_MALLOC : SUPPORT_MMAP;
             call < (heap ? SUPPORT_MALLOC + 1 : N_SUPPORT_CALLS); call++) {
            for (int for_good = 0; for_good < 2; for_good++) {
                n += fail_each(stages[i].run, (enum support_call)call, for_good, heap ? every : 1);
            }
        }
        succeed(stages[i].run);
        check_held(stages[i].name, &before);
        print_message("%s: %ld points of %s\n", stages[i].name, n, heap ? "the heap" : "files");
    }
}

static void every_allocation(void **state)
{
    (void)state;
    each(true);
}

static void every_file_call(void **state)
{
    (void)state;
    each(false);
}

static void must(utter_status status, const utter_error *error)
{
    if (status != UTTER_OK) {
        fail_msg("%s", error->text);
    }
}

static int begin(void **state)
{
    utter_voice *other;
    utter_error error = {.text = ""};
    (void)state;
    assert_int_equal(mkdir(support_path("voices"), 0700), 0);
    assert_in_range(
        snprintf(world.path, sizeof world.path, "%s", support_path("voices/a.voice")), 1, 511);
    must(open_model(&world.model, &error), &error);
    must(clone(&world.voice, "Hello.", &error), &error);
    must(clone(&other, "Good evening.", &error), &error);
    must(utter_voice_save(world.voice, world.path, &error), &error);
    world.saved = support_read_file(world.path, &world.saved_bytes);
    must(utter_voice_save(other, world.path, &error), &error);
    world.other = support_read_file(world.path, &world.other_bytes);
    utter_voice_free(&other);
    assert_false(is_file(world.saved, world.saved_bytes));
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(world.saved);
    free(world.other);
    utter_voice_free(&world.voice);
    utter_model_close(&world.model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation),
        cmocka_unit_test(every_file_call),
    };
    for (int i = 0; i < N_SAMPLES; i++) {
        world.sound[i] = 0.3f * sinf(0.05f * (float)i) * sinf(0.0007f * (float)i);
    }
    return cmocka_run_group_tests(tests, begin, end);
}
