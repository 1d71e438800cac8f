/* SPDX-License-Identifier: Apache-2.0
 * A worker beside a library that a test poses, and a front end that says what the test has it say. The library makes a
 * frame for each byte of a text, and takes its time by a clock of its own (the Makefile sends clock_gettime here).
 * Nothing waits: the front end says its next line where the worker asks for messages and has nothing else to do, or,
 * where a line begins with "+", before its next step. Items of a line:
 *     o 1 live      speech 1 is opened; or "gone", "odd", "nobody" (its voice), "deny", "lost", "ground" (in the
 *                   background), "words"
 *     t 1 abc       text for it; f 1: no more; c 1: cancelled; p 1, r 1: paused, resumed; x 1: what no worker knows
 *     k             a GPU that has lost a frame goes on with other kernels
 *     .0.3          nothing comes, for 0.3 s
 * Of some bytes a text does something else: see utter_reading_text and utter_reading_take. */
#ifndef TESTS_SERVER_POSED_LIBRARY_H
#define TESTS_SERVER_POSED_LIBRARY_H

#include "tests/support.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "server/cage/cage.h"
#include "server/worker/slot.h"
#include "server/worker/warm.h"
#include "server/worker/worker.h"

enum { LANES = 3, FRAME = 640, RATE = 8000, MOST_STEPS = 500, MOST_SAID = 1 << 18 };

struct utter_reading {
    char text[64];
    size_t n, made, taken;
    int rows_left;
    bool held, has_all;
    utter_piece_fn *piece;
    void *piece_user;
    utter_reading_stats stats;
};

static struct {
    double now, step_s, row_s;
    int rows, more_rows; /* steps that a prompt takes; each next one so many more */
    bool keeps;          /* sound is given when all of it is there */
    int n_steps, n_open;
    utter_status open_status, warm_status, step_status;
    bool takes_no_cores, is_beaten; /* is_beaten: beats are told, too */
    bool one_by_one;                /* as the clock was told before the warm-up */
    const char *kernels;
    char opened[600], asked[600], cage[600], voices[200];
    uint64_t cores;
    int policy;
    utter_reading *readings[LANES];
} fake;
static struct wire_hello hello; /* what the front end says first */

int __wrap_clock_gettime(clockid_t which, struct timespec *time);
int __wrap_clock_gettime(clockid_t which, struct timespec *time)
{
    (void)which;
    const long long ns = (long long)(1e9 * fake.now + 0.5);
    *time = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return 0;
}

/* ---- The system ---- */

int sched_setaffinity(pid_t process, size_t n, const cpu_set_t *cores)
{
    assert_true(process == 0 && n >= sizeof fake.cores);
    memcpy(&fake.cores, cores, sizeof fake.cores);
    return 0;
}

int sched_getaffinity(pid_t process, size_t n, cpu_set_t *cores)
{
    (void)process;
    memset(cores, 0, n);
    memcpy(cores, &fake.cores, fake.takes_no_cores ? 0 : sizeof fake.cores);
    return 0;
}

int sched_setscheduler(pid_t process, int policy, const struct sched_param *how)
{
    assert_true(process == 0 && how->sched_priority == 0);
    fake.policy = policy;
    return 0;
}

bool cage_suits(const char *device)
{
    return strncmp(device, "cuda", 4) != 0;
}

int cage_files(const struct cage_files *files)
{
    assert_int_equal(fake.n_open, 0); /* before the model has threads */
    snprintf(fake.cage, sizeof fake.cage, "reads %s %s %s, writes %s", files->reads[0], files->reads[1],
        files->reads[2], files->writes[0]);
    return CAGE_FILES;
}

int cage_calls(void)
{
    assert_int_equal(fake.n_open, 1);
    return CAGE_CALLS;
}

/* ---- The library ---- */

void utter_model_options_init_sized(utter_model_options *options, size_t size)
{
    memset(options, 0, size);
}

utter_status utter_model_open(
    utter_model **model, const char *path, const utter_model_options *o, utter_error *error)
{
    *model = NULL;
    fake.n_open++;
    snprintf(fake.opened, sizeof fake.opened,
        "%s on %s, kernels %s, %d threads, %d lanes, weights %d, %llu kept, cache %s, prompts %g s",
        path, o->device, o->cpu_kernels ? o->cpu_kernels : "-", o->n_threads, o->n_lanes,
        (int)o->weights, (unsigned long long)o->snapshot_bytes, o->cache ? o->cache : "-",
        o->prompt_seconds);
    if (fake.open_status) {
        return error_set(error, fake.open_status, "it cannot be opened");
    }
    o->log(o->log_user, "one note");
    o->log(o->log_user, "another note");
    *model = (utter_model *)&fake;
    return UTTER_OK;
}

void utter_model_close(utter_model **model)
{
    for (int i = 0; i < LANES; i++) {
        assert_null(fake.readings[i]);
    }
    *model = NULL;
}

utter_status utter_model_get_info(const utter_model *model, utter_model_info *info)
{
    assert_ptr_equal(model, &fake);
    assert_int_equal(info->size, sizeof *info);
    *info = (utter_model_info){.size = sizeof *info,
        .kind_name = "custom_voice",
        .size_name = "0b6",
        .device = strncmp(hello.device, "cuda", 4) == 0 ? "cuda" : "cpu",
        .kernels = fake.kernels,
        .weights = "q8",
        .takes_instructions = true,
        .sample_rate = RATE,
        .frame_samples = FRAME,
        .n_lanes = LANES,
        .n_threads = 7,
        .width = 8,
        .memory_bytes = 9,
        .n_voices = 2,
        .n_languages = 3};
    return UTTER_OK;
}

const char *utter_model_voice_name(const utter_model *model, int index)
{
    static const char *const names[] = {"clara", "miles"};
    (void)model;
    return names[index];
}

const char *utter_model_language_name(const utter_model *model, int index)
{
    static const char *const names[] = {"english", "german", "thai"};
    (void)model;
    return names[index];
}

utter_status warm_up(utter_model *model, struct slot *slots, int n_lanes, struct schedule_clock *clock,
    utter_error *error)
{
    assert_true(model == (utter_model *)&fake && slots && n_lanes == LANES);
    fake.kernels = "warm";
    fake.one_by_one = clock->one_by_one;
    for (int i = 0; i < 30; i++) {
        schedule_learn(clock, 1 + i % LANES, 0.010 + 0.002 * (1 + i % LANES), 0, 0);
    }
    return fake.warm_status ? error_set(error, fake.warm_status, "it does not get warm") : UTTER_OK;
}

utter_status utter_stream_options_init_sized(
    utter_stream_options *options, size_t size, const utter_model *model)
{
    assert_ptr_equal(model, &fake);
    memset(options, 0, size);
    return UTTER_OK;
}

void utter_reading_options_init_sized(utter_reading_options *options, size_t size)
{
    memset(options, 0, size);
}

utter_status utter_voice_load(utter_voice **voice, const char *path, utter_error *error)
{
    if (strcmp(path, "gone") == 0) {
        return error_set(error, UTTER_E_FILE, "/secret/gone: no such file");
    }
    if (strcmp(path, "odd") == 0) {
        return error_set(error, UTTER_E_MODEL, "another model's");
    }
    *voice = (utter_voice *)&fake.cage;
    return UTTER_OK;
}

utter_status utter_voice_preset(
    utter_voice **voice, const utter_model *model, const char *name, utter_error *error)
{
    assert_ptr_equal(model, &fake);
    *voice = strcmp(name, "clara") == 0 ? (utter_voice *)&fake.voices : NULL;
    return *voice ? UTTER_OK : error_set(error, UTTER_E_ARGUMENT, "no voice '%s'", name);
}

void utter_voice_free(utter_voice **voice)
{
    *voice = NULL;
}

utter_status utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *v, const utter_reading_options *o, utter_error *error)
{
    int i = 0;
    const char *instruct = v->instruct ? v->instruct : "-";
    assert_ptr_equal(model, &fake);
    while (i < LANES - 1 && fake.readings[i]) {
        i++;
    }
    snprintf(fake.asked, sizeof fake.asked,
        "%s, language %s, instruct %s, layout %d, seed %llu, words %d, plain %d, most %d %d, "
        "temperature "
        "%g, live %d, retries %d, markup %d, spell %d, carry %d",
        v->voice == (utter_voice *)&fake.cage     ? "a file"
        : v->voice == (utter_voice *)&fake.voices ? "clara"
                                                  : "no voice",
        v->language ? v->language : "-", instruct, (int)v->layout, (unsigned long long)v->seed,
        v->words, v->plain, v->max_frames, o->max_frames, (double)v->talker.temperature, o->live,
        o->retries, o->markup, o->spell_out, o->carry);
    if (strcmp(instruct, "deny") == 0) {
        return error_set(error, UTTER_E_ARGUMENT, "denied");
    }
    if (strcmp(instruct, "lost") == 0) {
        return error_set(error, UTTER_E_DEVICE, "the device is lost");
    }
    assert_null(fake.readings[i]);
    fake.readings[i] = *reading = memory_new(1, sizeof **reading);
    **reading = (utter_reading){.rows_left = fake.rows + fake.more_rows * i,
        .piece = o->piece,
        .piece_user = o->piece_user,
        .stats = {.n_text_tokens = 50}};
    return UTTER_OK;
}

void utter_reading_free(utter_reading **reading)
{
    for (int i = 0; i < LANES && *reading; i++) {
        fake.readings[i] = fake.readings[i] == *reading ? NULL : fake.readings[i];
    }
    memory_free(*reading);
    *reading = NULL;
}

/* "?": the text is odd; "$": the device is lost as it comes. */
utter_status utter_reading_text(utter_reading *r, const char *text, size_t n, utter_error *error)
{
    if (memchr(text, '?', n) || memchr(text, '$', n)) {
        return memchr(text, '?', n) ? error_set(error, UTTER_E_ARGUMENT, "an odd text")
                                    : error_set(error, UTTER_E_DEVICE, "lost with its text");
    }
    memcpy(r->text + r->n, text, n);
    r->n += n;
    r->stats.bytes = r->n;
    return UTTER_OK;
}

utter_status utter_reading_finish(utter_reading *r, utter_error *error)
{
    (void)error;
    r->has_all = true;
    return UTTER_OK;
}

void utter_reading_hold(utter_reading *r, bool held)
{
    if (r) {
        r->held = held;
    }
}

utter_status utter_reading_get_stats(const utter_reading *r, utter_reading_stats *stats)
{
    assert_int_equal(stats->size, sizeof *stats);
    *stats = r->stats;
    stats->size = sizeof *stats;
    return UTTER_OK;
}

/* "!": it fails at this frame; "#": the device is lost; "%": this piece is not whole. */
utter_status utter_reading_take(
    utter_reading *r, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    assert_int_equal(capacity, FRAME);
    if (r->taken == r->made || (fake.keeps && r->made < r->n)) {
        const bool is_over = r->has_all && r->made == r->n;
        r->stats.n_pieces = is_over ? 1 : r->stats.n_pieces;
        r->stats.finish = is_over ? UTTER_FINISH_EOS : UTTER_FINISH_NONE;
        return is_over ? UTTER_END : UTTER_AGAIN;
    }
    const char c = r->text[r->taken++];
    if (c == '!' || c == '#') {
        return error_set(error, c == '!' ? UTTER_E_NUMBER : UTTER_E_FILE, "failed at %c", c);
    }
    if (c == '%' || c == '&') {
        const utter_piece piece = {.at = r->taken + 100, .whole = c == '&'};
        r->piece(r->piece_user, &piece);
    }
    for (int i = 0; i < FRAME; i++) {
        pcm[i] = (float)c;
    }
    *n = FRAME;
    return UTTER_OK;
}

/* Of the words that are asked for there is one, from the first frame on. */
const utter_word *utter_reading_words(utter_reading *r, uint64_t *first, size_t *n)
{
    static utter_word word = {.bytes = 1, .end = FRAME, .final = true};
    *first = 0;
    *n = r->made > 0;
    return &word;
}

/* Who is not held reads a row of its prompt, behind the last of which comes a frame. */
utter_status utter_model_step(utter_model *model, utter_error *error)
{
    bool moved = false;
    assert_ptr_equal(model, &fake);
    assert_true(++fake.n_steps < MOST_STEPS);
    for (int i = 0; i < LANES; i++) {
        utter_reading *r = fake.readings[i];
        if (!r || r->held || r->made == r->n) {
            continue;
        }
        moved = true;
        if (r->rows_left > 0) {
            r->rows_left--;
            r->stats.n_rows++;
            r->stats.prefill_s += fake.row_s;
            fake.now += fake.row_s;
        }
        if (r->rows_left == 0) {
            r->made++;
            r->stats.n_frames++;
            r->stats.talker_s += 1;
            r->stats.predictor_s += 2;
            r->stats.vocoder_s += 3;
        }
    }
    fake.now += fake.step_s;
    return fake.step_status ? error_set(error, fake.step_status, "no step")
           : moved          ? UTTER_OK
                            : UTTER_AGAIN;
}

/* ---- The front end ---- */

static int front = -1;
static const char *const *line; /* NULL behind the last */
static int n_waits;

static void open_speech(struct wire_out *out, uint32_t id, const char *how)
{
    struct wire_open o = {.live = strstr(how, "live") != NULL,
        .background = strstr(how, "ground") != NULL,
        .words = strstr(how, "words") != NULL,
        .voice_file = strstr(how, "gone")  ? "gone"
                      : strstr(how, "odd") ? "odd"
                                           : NULL,
        .voice_name = strstr(how, "nobody")  ? "nobody"
                      : strstr(how, "clara") ? "clara"
                                             : NULL,
        .instruct = strstr(how, "deny")   ? "deny"
                    : strstr(how, "lost") ? "lost"
                                          : NULL};
    for (int i = 0; i < parameter_count; i++) {
        o.sampling[i] = parameter_own(&parameter_table[i]);
    }
    wire_put_open(out, id, &o);
}

static void say_item(struct wire_out *out, const char *item)
{
    char what = 0, rest[80] = "";
    unsigned id = 0;
    sscanf(item, " %c %u %79[^;]", &what, &id, rest);
    static const struct {
        char what;
        enum wire_kind kind;
    } kinds[] = {{'t', WIRE_TEXT}, {'f', WIRE_FINISH}, {'c', WIRE_CANCEL}, {'p', WIRE_PAUSE},
        {'r', WIRE_RESUME}, {'x', WIRE_READY}};
    if (what == 'h') {
        wire_put_hello(out, &hello);
    } else if (what == 'o') {
        open_speech(out, id, rest);
    } else if (what == 'k') {
        fake.kernels = "other";
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].what == what) {
            wire_message(out, kinds[i].kind, id, rest, strlen(rest));
        }
    }
}

static void say_line(const char *all)
{
    struct wire_out out = {0};
    for (const char *item = all + (*all == '+'); item; item = strchr(item, ';')) {
        item += *item == ';';
        say_item(&out, item);
    }
    assert_int_equal(send(front, out.bytes, out.n, MSG_NOSIGNAL), out.n);
    wire_fini(&out);
}

/* What the worker looks for messages with. */
int poll(struct pollfd *polled, nfds_t n, int wait_ms)
{
    const bool waits = wait_ms != 0;
    n_waits += waits;
    if (*line && **line == '.' && waits) {
        assert_int_equal(wait_ms, 250);
        fake.now += atof(*line++ + 1);
        return 0;
    }
    if (*line && (waits || **line == '+')) {
        say_line(*line++);
    } else if (!*line && waits) {
        shutdown(front, SHUT_WR);
    }
    return (int)syscall(SYS_ppoll, polled, n, &(struct timespec){0}, NULL, 0);
}

static char said[MOST_SAID];

__attribute__((format(printf, 1, 2))) static inline void note(const char *format, ...)
{
    size_t n = strlen(said);
    va_list list;
    va_start(list, format);
    vsnprintf(said + n, sizeof said - n, format, list);
    va_end(list);
}

static void note_ready(const struct wire_message *m)
{
    struct wire_ready r;
    assert_true(wire_get_ready(&r, m));
    note("ready %d %s %s %s %s %s %d %d %d %d %d %d %llu, cage %d, note %s,", (int)r.version,
        r.kind_name, r.size_name, r.device, r.kernels, r.weights, r.takes_instructions, r.sample_rate,
        r.frame_samples, r.lanes, r.threads, r.width, (unsigned long long)r.memory_bytes, r.cage,
        r.note ? r.note : "-");
    for (int i = 0; i < r.n_voices; i++) {
        note(" %s", r.voices[i]);
    }
    note(",");
    for (int i = 0; i < r.n_languages; i++) {
        note(" %s", r.languages[i]);
    }
    note("\n");
}

static void note_message(const struct wire_message *m)
{
    struct wire_failed failed;
    struct wire_beat b;
    struct wire_done d;
    struct wire_words words;
    float sample;
    if (m->kind == WIRE_READY) {
        note_ready(m);
    } else if (m->kind == WIRE_BEAT && fake.is_beaten) {
        assert_true(wire_get_beat(&b, m));
        note("beat %d %d %d %d, %.1f %.1f %.1f %.3f\n", b.n_open, b.n_stepped, b.capacity,
            b.falls_behind, 1e3 * b.step_s, 1e3 * b.next_step_s, 1e3 * b.lane_s, 1e3 * b.prompt_s);
    } else if (m->kind == WIRE_PCM) {
        memcpy(&sample, m->body, sizeof sample);
        note("%u: %c%s\n", m->id, (int)sample, m->bytes == FRAME * sizeof sample ? "" : " odd");
    } else if (m->kind == WIRE_DONE) {
        assert_true(wire_get_done(&d, m));
        note("%u: done %d, frames %d, tokens %d, %g %g %g %g s, pieces %d %d %d, at %d\n", m->id,
            d.finish, d.n_frames, d.n_text_tokens, d.prefill_s, d.talker_s, d.predictor_s, d.vocoder_s,
            d.n_pieces, d.n_retries, d.n_broken, (int)d.broken_at);
    } else if (m->kind == WIRE_FAILED || m->kind == WIRE_REFUSED) {
        assert_true(wire_get_failed(&failed, m));
        note("%u: %s %d %s\n", m->id, m->kind == WIRE_FAILED ? "failed" : "refused", failed.status,
            failed.text);
    } else if (m->kind == WIRE_WORDS) {
        assert_true(wire_get_words(&words, m));
        note("%u: %zu words\n", m->id, words.n);
    } else if (m->kind == WIRE_FREED) {
        note("%u: freed\n", m->id);
    } else if (m->kind == WIRE_KERNELS) {
        note("kernels %s\n", wire_get_kernels(m));
    }
}

static void build(void)
{
    memset(&fake, 0, sizeof fake);
    fake.now = 1000;
    fake.step_s = 0.010;
    fake.row_s = 0.002;
    fake.rows = 1;
    fake.kernels = "cold";
    hello = (struct wire_hello){.version = WIRE_VERSION, .model = "m", .device = "cpu"};
}

/* What the worker says until the front end has said all lines and closes its end. */
static void play(int code, const char *const *lines, const char *expected)
{
    static uint8_t in[MOST_SAID];
    size_t n_in = 0, used;
    int pair[2];
    struct wire_message m;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    front = pair[0];
    line = lines;
    said[0] = 0;
    n_waits = 0;
    assert_int_equal(worker_main(pair[1]), code);
    for (ssize_t n; (n = recv(front, in + n_in, sizeof in - n_in, 0)) > 0;) {
        n_in += (size_t)n;
    }
    for (size_t at = 0; at < n_in; at += used) {
        assert_int_equal(wire_read(&m, in + at, n_in - at, &used), WIRE_MESSAGE);
        note_message(&m);
    }
    close(pair[0]), close(pair[1]);
    if (expected && strcmp(said, expected) != 0) {
        fail_msg("said\n%s\ninstead of\n%s", said, expected);
    }
}

#define LINES(...) ((const char *const[]){"h", __VA_ARGS__, NULL})
#define READY_ON(device)                                                                               \
    "ready 14 custom_voice 0b6 " device                                                                \
    " warm q8 1 8000 640 3 7 8 9, cage 0, note another note, clara miles, english german thai\n"
#define READY READY_ON("cpu")

#endif
