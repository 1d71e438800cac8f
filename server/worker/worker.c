/* SPDX-License-Identifier: Apache-2.0
 * The worker: one loop of messages, a choice, a step, samples out. It never waits while a speech can move. */
#include "server/worker/worker.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "server/cage/cage.h"
#include "server/protocol/devices.h"
#include "server/protocol/wire_in.h"
#include "server/worker/outbox.h"
#include "server/worker/slot.h"
#include "server/worker/warm.h"

enum { BEAT_MS = 250, EXIT_DEVICE = 3 };
enum { LOOK_S = 2 }; /* to ask the model what it is takes a call of the driver */
/* Steps so long ago say nothing of now: what else the machine did may have made them slow. */
enum { FORGET_S = 60 };
/* Holes of the heap go back when nobody has spoken for so long: it takes a millisecond. */
enum { QUIET_S = 1 };

/* Of a prompt in one step: half of the step, so that frames of others fit beside it. */
static const double piece_s = 0.5e-3 * SCHEDULE_STEP_MS;

struct worker {
    int socket;
    utter_model *model;
    utter_model_info info;
    struct slot *slots;              /* [n_lanes] */
    struct schedule_speech *choices; /* [n_lanes] */
    int n_lanes;
    struct schedule_clock clock;
    int capacity; /* what the clock said after the last step */
    struct wire_in in;
    struct wire_out out; /* what the step gives, then the outbox's */
    struct outbox *outbox;
    float *pcm; /* one frame */
    double last_beat, last_look, last_step, last_tidy;
    bool is_idle;   /* the kernel sees to it that it is in nobody's way */
    int cage;       /* its parts that hold, CAGE_ */
    char note[512]; /* what the library said while it opened the model */
    bool over;      /* the front end has gone, or the model is broken */
    int code;
};

static void flush_out(struct worker *w)
{
    w->over = !outbox_send(w->outbox, &w->out) || w->over;
}

static struct slot *find_slot(struct worker *w, uint32_t id)
{
    struct slot *slot = w->slots, *end = slot + w->n_lanes;
    while (slot < end && !(slot->reading && slot->id == id)) {
        slot++;
    }
    return slot < end ? slot : NULL;
}

static struct slot *free_slot(struct worker *w)
{
    struct slot *slot = w->slots, *end = slot + w->n_lanes;
    while (slot < end && slot->reading) {
        slot++;
    }
    return slot < end ? slot : NULL;
}

static utter_status find_voice(
    struct worker *w, utter_voice **voice, const struct wire_open *o, utter_error *error)
{
    *voice = NULL;
    if (o->voice_file) {
        utter_status status = utter_voice_load(voice, o->voice_file, error);
        /* The client knows no path of this machine. */
        return status == UTTER_E_FILE
                   ? error_set(error, status, "the file of this voice cannot be read")
                   : status;
    }
    return o->voice_name ? utter_voice_preset(voice, w->model, o->voice_name, error) : UTTER_OK;
}

/* The speeches are not failed: those without a sound begin again on the next worker. */
static void give_up(struct worker *w, utter_status status, const char *why)
{
    if (w->code == 0) {
        wire_put_refused(&w->out, status, why);
        w->code = EXIT_DEVICE;
    }
}

static void open_speech(struct worker *w, const struct wire_message *m)
{
    struct wire_open o;
    struct slot *slot = free_slot(w);
    utter_error error = {.text = "the front end sent what cannot be"};
    utter_voice *voice = NULL;
    utter_status status = UTTER_E_INTERNAL;
    bool good = slot && wire_get_open(&o, m);
    if (good) {
        o.background = o.background && !w->is_idle;
    }
    if (good && (status = find_voice(w, &voice, &o, &error)) == UTTER_OK) {
        status = slot_open(slot, w->model, m->id, &o, voice, &error);
        if (slot_model_broke(status)) {
            give_up(w, status, error.text);
        }
    }
    utter_voice_free(&voice);
    if (status != UTTER_OK && w->code == 0) {
        wire_put_failed(&w->out, m->id, status, error.text);
    }
}

static void fail_speech(struct worker *w, struct slot *slot, utter_status status, const char *why)
{
    wire_put_failed(&w->out, slot->id, status, why);
    slot_close(slot);
}

static void feed_speech(struct worker *w, struct slot *slot, const struct wire_message *m)
{
    utter_error error = {.text = ""};
    const char *text = m->kind == WIRE_TEXT ? (const char *)m->body : NULL;
    utter_status status = slot_text(slot, text, m->bytes, &error);
    if (slot_model_broke(status)) {
        give_up(w, status, error.text);
    } else if (status < 0) {
        fail_speech(w, slot, status, error.text);
    }
}

static void handle(struct worker *w, const struct wire_message *m)
{
    struct slot *slot = m->kind == WIRE_OPEN ? NULL : find_slot(w, m->id);
    if (m->kind == WIRE_OPEN) {
        open_speech(w, m);
    } else if (!slot) {
        return; /* it has ended; the front end will read so */
    } else if (m->kind == WIRE_TEXT || m->kind == WIRE_FINISH) {
        feed_speech(w, slot, m);
    } else if (m->kind == WIRE_CANCEL) {
        wire_message(&w->out, WIRE_FREED, slot->id, NULL, 0);
        slot_close(slot);
    } else if (m->kind == WIRE_PAUSE || m->kind == WIRE_RESUME) {
        slot->paused = m->kind == WIRE_PAUSE;
    } else {
        w->over = true;
    }
}

/* Reads what is there, waiting up to `wait_ms` for it. */
static void receive(struct worker *w, int wait_ms)
{
    struct pollfd polled = {w->socket, POLLIN, 0};
    size_t room;
    if (poll(&polled, 1, wait_ms) <= 0) {
        return;
    }
    uint8_t *bytes = wire_in_room(&w->in, &room);
    const ssize_t n = bytes ? recv(w->socket, bytes, room, MSG_DONTWAIT) : 0;
    wire_in_came(&w->in, n > 0 ? (size_t)n : 0);
    w->over = w->over || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* The next whole message; false when more must be read. */
static bool next_message(struct worker *w, struct wire_message *m)
{
    enum wire_progress progress = w->over ? WIRE_MORE : wire_next(&w->in, m);
    w->over = w->over || progress == WIRE_BAD;
    return progress == WIRE_MESSAGE;
}

static void take_messages(struct worker *w, int wait_ms)
{
    struct wire_message m;
    if (wait_ms > 0) { /* nobody can step: what a long sound or text took that came at once goes back */
        wire_fini(&w->out);
        wire_in_rest(&w->in);
        outbox_rest(w->outbox);
    }
    receive(w, wait_ms);
    while (next_message(w, &m)) {
        handle(w, &m);
    }
    /* That a lane is free must not wait for the step that comes. */
    if (w->out.n) {
        flush_out(w);
    }
}

/* Marks who steps and holds the others; returns how many. */
static int choose(struct worker *w, double now)
{
    int n_ready = 0;
    for (int i = 0; i < w->n_lanes; i++) {
        slot_choice(&w->choices[i], &w->slots[i], piece_s, w->clock.prompt_s);
        n_ready += w->choices[i].can_step;
    }
    int n = n_ready ? schedule_choose(w->choices, w->n_lanes, now, &w->clock) : 0;
    for (int i = 0; i < w->n_lanes; i++) {
        utter_reading_hold(w->slots[i].reading, !w->choices[i].chosen);
    }
    return n;
}

/* What the step gave this speech. */
static void harvest(struct worker *w, struct slot *slot, double now, struct slot_gain *gain)
{
    utter_error error = {.text = ""};
    utter_status status = slot_take(slot, &w->info, w->pcm, now, gain, &w->out, &error);
    if (status == UTTER_END) {
        const struct wire_done done = slot_done(slot);
        wire_put_done(&w->out, slot->id, &done);
        slot_close(slot);
    } else if (slot_model_broke(status)) {
        give_up(w, status, error.text);
    } else if (status < 0) {
        fail_speech(w, slot, status, error.text);
    }
}

static void beat(struct worker *w, double now, int n_stepped, double step_s)
{
    double frame_s = (double)w->info.frame_samples / w->info.sample_rate;
    if (n_stepped > 0 || w->capacity == 0) {
        w->capacity = schedule_capacity(&w->clock, w->n_lanes, frame_s);
        w->last_step = now;
    }
    struct wire_beat beat = {.n_stepped = n_stepped,
        .capacity = w->capacity,
        .falls_behind = now - w->last_step < FORGET_S && schedule_falls_behind(&w->clock, frame_s),
        .step_s = step_s,
        .prompt_s = w->clock.prompt_s};
    for (int i = 0; i < w->n_lanes; i++) {
        beat.n_open += w->slots[i].reading && !w->slots[i].background;
    }
    beat.next_step_s = schedule_step_s(&w->clock, beat.n_open + 1, 0);
    beat.lane_s = max(schedule_step_s(&w->clock, beat.n_open + 2, 0) - beat.next_step_s, 0.0);
    wire_put_beat(&w->out, &beat);
    w->last_beat = now;
}

/* A GPU that has lost a frame goes on with other kernels: whoever looks after the server should know. */
static void look_at_kernels(struct worker *w, double now)
{
    utter_model_info info = {.size = sizeof info};
    if (now - w->last_look < LOOK_S || utter_model_get_info(w->model, &info) != UTTER_OK) {
        return;
    }
    w->last_look = now;
    if (strcmp(info.kernels, w->info.kernels) != 0) {
        wire_put_kernels(&w->out, info.kernels);
        w->info.kernels = info.kernels;
    }
}

/* What a step was spent on. */
struct spent {
    int n_lanes;           /* lanes that went on */
    int n_moved;           /* of them, those that made a frame */
    int n_prompts, n_read; /* that read rows of a prompt, rows_s in all; and its last ones */
    double rows_s;
    /* Size of the prompts that came to their end in this step, and the seconds they took, steps before included. */
    double prompt_size, prompt_s;
};

static void settle(struct worker *w, struct slot *slot, double now, struct spent *spent)
{
    struct slot_gain gain;
    harvest(w, slot, now, &gain);
    spent->n_lanes += gain.moved || gain.has_read;
    spent->n_moved += gain.moved;
    spent->n_prompts += gain.has_read;
    spent->n_read += gain.has_read && gain.prompt > 0;
    spent->rows_s += gain.rows_s;
    spent->prompt_size += gain.prompt;
    spent->prompt_s += gain.prompt_s;
}

/* Of several prompts a device tells the time of the last one only: together they took what the step took beyond its
 * frames, of which it teaches nothing then. Else those that come at once would seem as cheap as the last one alone. */
static void learn(struct worker *w, const struct spent *spent, double step_s)
{
    if (spent->n_prompts <= 1) {
        schedule_learn(
            &w->clock, spent->n_moved, step_s - spent->rows_s, spent->prompt_size, spent->prompt_s);
    } else {
        double rows_s = max(step_s - schedule_step_s(&w->clock, spent->n_moved, 0), 0.0);
        schedule_learn(
            &w->clock, 0, 0, spent->n_read == spent->n_prompts ? spent->prompt_size : 0, rows_s);
    }
}

static void step(struct worker *w)
{
    double begin = clock_seconds();
    struct spent spent = {0};
    int n = choose(w, begin);
    utter_error error = {.text = ""};
    utter_status status = n ? utter_model_step(w->model, &error) : UTTER_OK;
    double end = clock_seconds();
    for (int i = 0; n && i < w->n_lanes; i++) {
        if (w->choices[i].chosen) {
            settle(w, &w->slots[i], end, &spent);
        }
    }
    learn(w, &spent, end - begin);
    if (n || end - w->last_beat > 1e-3 * BEAT_MS) {
        beat(w, end, spent.n_lanes, n ? end - begin : 0);
    }
    look_at_kernels(w, end);
    if (slot_model_broke(status)) {
        give_up(w, status, error.text);
    }
    flush_out(w);
    w->over = w->over || w->code != 0;
}

static bool any_can_step(const struct worker *w)
{
    bool any = false;
    for (int i = 0; i < w->n_lanes && !any; i++) {
        any = slot_can_step(&w->slots[i]);
    }
    return any;
}

/* What many lanes at once took leaves holes, a few more with each crowd. */
static void tidy(struct worker *w, double now)
{
    if (w->last_step > w->last_tidy && now - w->last_step > QUIET_S) {
        w->last_tidy = now;
        memory_give_back();
    }
}

static void run(struct worker *w)
{
    while (!w->over) {
        const bool can_step = any_can_step(w);
        if (!can_step) {
            tidy(w, clock_seconds());
        }
        take_messages(w, can_step ? 0 : BEAT_MS);
        if (!w->over) {
            step(w);
        }
    }
}

static void say_ready(struct worker *w)
{
    utter_model_get_info(w->model, &w->info); /* once more: the warm-up may have changed the kernels */
    struct wire_ready r = {.version = WIRE_VERSION,
        .kind_name = w->info.kind_name,
        .size_name = w->info.size_name,
        .device = w->info.device,
        .kernels = w->info.kernels,
        .weights = w->info.weights,
        .takes_instructions = w->info.takes_instructions,
        .sample_rate = w->info.sample_rate,
        .frame_samples = w->info.frame_samples,
        .lanes = w->n_lanes,
        .threads = w->info.n_threads,
        .width = w->info.width,
        .memory_bytes = w->info.memory_bytes,
        .cage = w->cage,
        .note = *w->note ? w->note : NULL};
    for (; r.n_voices < WIRE_MAX_NAMES && r.n_voices < w->info.n_voices; r.n_voices++) {
        r.voices[r.n_voices] = utter_model_voice_name(w->model, r.n_voices);
    }
    for (; r.n_languages < WIRE_MAX_NAMES && r.n_languages < w->info.n_languages; r.n_languages++) {
        r.languages[r.n_languages] = utter_model_language_name(w->model, r.n_languages);
    }
    beat(w, clock_seconds(), 0, 0); /* first: how many speeches it keeps up with */
    wire_put_ready(&w->out, &r);
    flush_out(w);
}

/* The last note of the opening; later ones are about a speech. */
static void keep_note(void *user, const char *line)
{
    struct worker *w = user;
    if (!w->slots) {
        snprintf(w->note, sizeof w->note, "%s", line);
    }
}

static utter_status open_model(struct worker *w, const struct wire_hello *hello, utter_error *error)
{
    utter_model_options options;
    utter_model_options_init(&options);
    options.device = hello->device;
    options.cpu_kernels = hello->kernels;
    options.n_threads = hello->threads;
    options.n_lanes = hello->lanes;
    options.weights = (utter_weights)hello->weights;
    options.snapshot_bytes = hello->snapshot_bytes;
    options.cache = hello->cache;
    options.prompt_seconds = piece_s;
    options.log = keep_note;
    options.log_user = w;
    utter_status status = utter_model_open(&w->model, hello->model, &options, error);
    if (status) {
        return status;
    }
    w->info.size = sizeof w->info;
    utter_model_get_info(w->model, &w->info);
    w->n_lanes = w->info.n_lanes;
    w->slots = memory_new((size_t)w->n_lanes, sizeof *w->slots);
    w->choices = memory_new((size_t)w->n_lanes, sizeof *w->choices);
    w->pcm = memory_new((size_t)w->info.frame_samples, sizeof *w->pcm);
    if (!w->slots || !w->choices || !w->pcm) {
        return error_set(error, UTTER_E_MEMORY, "out of memory");
    }
    return UTTER_OK;
}

/* Before the model has threads. The folder for what is learnt has to be there to be named. */
static void enter_cage(struct worker *w, const struct wire_hello *hello)
{
    utter_error error; /* without the folder the next worker learns anew */
    if (hello->cache) {
        file_make_folder(hello->cache, &error);
    }
    const struct cage_files files = {
        .reads = {hello->model, hello->voices, hello->temporary_voices}, .writes = {hello->cache}};
    w->cage = cage_files(&files);
}

/* A worker for some cores runs on them alone, with all threads that it starts from now on: what these write first lies
 * in memory near them. To the library they are the CPU. */
static utter_status take_cores(struct wire_hello *hello, utter_error *error)
{
    struct devices_cores wanted, given = {{0}};
    if (!devices_cores(&wanted, hello->device)) {
        return UTTER_OK;
    }
    const char *device = hello->device;
    hello->device = "cpu";
    bool taken = sched_setaffinity(0, sizeof wanted, (const cpu_set_t *)(const void *)&wanted) == 0 &&
                 sched_getaffinity(0, sizeof given, (cpu_set_t *)(void *)&given) == 0;
    return taken && memcmp(&wanted, &given, sizeof wanted) == 0
               ? UTTER_OK
               : error_set(
                     error, UTTER_E_ARGUMENT, "--device %s: not all of these cores are here", device);
}

/* With the threads that it starts: the processor when nobody else wants it, and the first to end where memory runs
 * out. What of it is not allowed is as for others. */
static void be_idle(void)
{
    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    FILE *score = fopen("/proc/self/oom_score_adj", "we");
    if (score) {
        fputs("1000", score);
        fclose(score);
    }
}

/* The first message, and the model that it names. */
static void greet(struct worker *w)
{
    struct wire_message m;
    struct wire_hello hello;
    while (!w->over && !next_message(w, &m)) {
        receive(w, -1);
    }
    if (w->over || m.kind != WIRE_HELLO || !wire_get_hello(&hello, &m) ||
        hello.version != WIRE_VERSION) {
        w->over = true;
        return;
    }
    utter_error error = {.text = ""};
    w->is_idle = hello.idle;
    if (w->is_idle) {
        be_idle();
    }
    const bool caged = hello.caged && cage_suits(hello.device);
    if (caged) {
        enter_cage(w, &hello);
    }
    utter_status status = take_cores(&hello, &error);
    status = status == UTTER_OK ? open_model(w, &hello, &error) : status;
    if (status == UTTER_OK) {
        w->clock.one_by_one = strcmp(w->info.device, "cpu") == 0;
        status = warm_up(w->model, w->slots, w->n_lanes, &w->clock, &error);
    }
    if (status != UTTER_OK) {
        wire_put_refused(&w->out, status, error.text);
        flush_out(w);
        w->over = true;
        w->code = 1;
        return;
    }
    w->cage |= caged ? cage_calls() : 0;
    say_ready(w);
}

int worker_main(int socket)
{
    struct worker w = {.socket = socket, .outbox = outbox_new(socket)};
    if (!w.outbox) {
        return 1;
    }
    /* Ctrl-C in a terminal reaches both processes; the front end decides when this one ends. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    greet(&w);
    run(&w);
    /* The front end hears of the end first: a device that is lost takes its time to be let go. */
    outbox_free(w.outbox);
    shutdown(socket, SHUT_RDWR);
    for (int i = 0; i < w.n_lanes && w.slots; i++) {
        slot_close(&w.slots[i]);
    }
    utter_model_close(&w.model);
    memory_free(w.slots);
    memory_free(w.choices);
    memory_free(w.pcm);
    wire_in_fini(&w.in);
    wire_fini(&w.out);
    return w.code;
}
