/* SPDX-License-Identifier: Apache-2.0
 * Words of answers that are whole: they count to what clients have not taken, and the answer is made with little more
 * memory than its text. The worker is this program once more: it says a frame, and of each letter "w" so many words. */
#include "base/clock.h"
#include "tests/support.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/front/speech_batch.h"
#include "server/front/speech_http.h"
#include "server/loop/jobs.h"
#include "server/loop/links.h"
#include "server/speech/admission.h"
#include "server/speech/speech.h"
#include "server/speech/words.h"
#include "tests/server/posed_worker.h"

enum { RATE = 24000, FRAME = 1920, EACH = 4000, LETTERS = 10, N_WORDS = EACH * LETTERS };

/* ---- The worker ---- */

static void say_words(struct wire_out *out, const struct wire_message *m)
{
    static utter_word words[EACH];
    for (uint32_t i = 0; i < m->bytes; i++) {
        for (size_t k = 0; k < EACH; k++) {
            const uint64_t index = i * EACH + k;
            words[k] = (utter_word){.at = i,
                .bytes = 1,
                .start = index * 1234,
                .end = index * 1234 + 777,
                .certainty = 0.875f,
                .final = true};
        }
        wire_put_words(out, m->id, i * EACH, words, EACH, false);
    }
}

static void answer(struct wire_out *out, const struct wire_message *m)
{
    static float pcm[FRAME];
    struct wire_hello hello;
    if (m->kind == WIRE_HELLO && wire_get_hello(&hello, m)) {
        const struct wire_beat beat = {.capacity = 1};
        const struct wire_ready ready = {.version = WIRE_VERSION,
            .kind_name = "voice_design",
            .size_name = "",
            .device = "cuda",
            .kernels = "frame",
            .weights = "",
            .takes_instructions = true,
            .sample_rate = RATE,
            .frame_samples = FRAME,
            .lanes = 2};
        wire_put_beat(out, &beat);
        wire_put_ready(out, &ready);
    } else if (m->kind == WIRE_TEXT) {
        wire_message(out, WIRE_PCM, m->id, pcm, sizeof pcm);
        say_words(out, m);
    } else if (m->kind == WIRE_FINISH) {
        const struct wire_done done = {.finish = UTTER_FINISH_EOS, .n_frames = 1};
        wire_put_done(out, m->id, &done);
    }
}

/* ---- The front end ---- */

static size_t most_unsent; /* that was seen */

static void dispatch(struct link *l)
{
    speech_dispatch(l->server);
}

static void message(struct link *l, const struct wire_message *m)
{
    speech_message(l, m);
    most_unsent = l->server->unsent_bytes > most_unsent ? l->server->unsent_bytes : most_unsent;
}

static const struct link_owner link_owner = {dispatch, dispatch, message, speech_worker_lost, NULL};

static bool admit(struct conn *c, size_t *limit, struct refusal *refusal)
{
    (void)c, (void)refusal;
    *limit = LIMIT_JSON;
    return true;
}

static const struct conn_service speech = {admit, speech_http_request},
                                 batch = {admit, speech_batch_request};

static void run_for(struct server *s, double seconds)
{
    for (double end = clock_seconds() + seconds; clock_seconds() < end; usleep(200)) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
        links_tick(s, clock_seconds());
    }
}

static void begin(struct server *s)
{
    static const char *const devices[] = {"auto"};
    static const struct serve_options options = {.model = "",
        .format = "pcm",
        .devices = devices,
        .n_devices = 1,
        .queue = 8,
        .patience_ms = 60000,
        .quiet = true};
    *s = (struct server){.options = &options,
        .model_id = "",
        .base = event_base_new(),
        .was_ready = true,
        .most_conns = 8};
    assert_int_equal(event_base_priority_init(s->base, SERVER_PRIORITIES), 0);
    conn_places(s);
    TAILQ_INIT(&s->queued);
    TAILQ_INIT(&s->background.queued);
    admission_begin(s);
    s->jobs = jobs_new(s->base, 1);
    assert_non_null(s->jobs);
    assert_true(links_open(s, &link_owner));
    for (int i = 0; i < 6000 && links_ready(s) == 0; i++) {
        run_for(s, 0.01);
    }
    assert_int_equal(links_ready(s), 1);
    most_unsent = 0;
}

static void end(struct server *s)
{
    links_close(s);
    jobs_free(s->jobs);
    memory_free(s->ready_bytes);
    origins_end(&s->origins);
    event_base_free(s->base);
}

/* What the service answers to a body: its status, and its JSON in *json. */
static int ask(struct server *s, const struct conn_service *service, const char *body, json_t **json)
{
    static const struct sockaddr from = {.sa_family = AF_UNIX};
    int pair[2], status = 0;
    char head[256];
    size_t n = 0, room = 1 << 20, length = 0;
    char *got = test_calloc(room + 1, 1), *begins = NULL;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    assert_non_null(conn_new(s, service, pair[0], &from));
    snprintf(
        head, sizeof head, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", strlen(body));
    assert_int_equal(send(pair[1], head, strlen(head), 0), strlen(head));
    assert_int_equal(send(pair[1], body, strlen(body), 0), strlen(body));
    for (double limit = clock_seconds() + 200; clock_seconds() < limit && (!begins || n < length);) {
        run_for(s, 0.001);
        for (ssize_t more; (more = recv(pair[1], got + n, room - n, 0)) > 0;) {
            n += (size_t)more;
            if (n == room) {
                got = test_realloc(got, 2 * room + 1);
                room *= 2;
            }
        }
        got[n] = 0;
        const char *field = strstr(got, "Content-Length: ");
        begins = strstr(got, "\r\n\r\n");
        length =
            field && begins ? (size_t)(begins + 4 - got) + strtoul(field + 16, NULL, 10) : SIZE_MAX;
    }
    assert_true(begins && n == length);
    status = atoi(got + 9);
    if (status != 200) {
        print_message("%d: %s\n", status, begins + 4);
    }
    *json = json_loads(begins + 4, 0, NULL);
    assert_non_null(*json);
    close(pair[1]);
    run_for(s, 0.01);
    test_free(got);
    return status;
}

static const char
    SPEECH[] =
        "{\"input\":\"wwwwwwwwww\",\"stream\":false,\"instructions\":\"low\",\"word_timestamps\":true}",
    BATCH[] =
        "{\"instructions\":\"low\",\"items\":[{\"input\":\"wwwwwwwwww\",\"word_timestamps\":true}]}";

static void check_words(json_t *answer)
{
    json_t *words = json_object_get(answer, "words"), *word;
    assert_int_equal(json_array_size(words), N_WORDS);
    for (size_t i = 0; i < N_WORDS; i += i + 1 < N_WORDS ? N_WORDS - 1 : 1) {
        word = json_array_get(words, i);
        assert_int_equal(json_integer_value(json_object_get(word, "index")), i);
        assert_string_equal(json_string_value(json_object_get(word, "word")), "w");
        assert_int_equal(json_integer_value(json_object_get(word, "at")), i / EACH);
        assert_true(json_is_true(json_object_get(word, "final")));
    }
    assert_true(json_is_false(json_object_get(answer, "approximate")));
    assert_non_null(json_object_get(answer, "audio_data"));
}

/* All words arrive, and were counted while they were held; behind the answer nothing is. */
static void words_are_counted(void **state)
{
    struct server s;
    json_t *json;
    (void)state;
    begin(&s);
    for (int i = 0; i < 2; i++) {
        most_unsent = 0;
        assert_int_equal(ask(&s, i ? &batch : &speech, i ? BATCH : SPEECH, &json), 200);
        check_words(i ? json_array_get(json_object_get(json, "results"), 0) : json);
        json_decref(json);
        assert_in_range(most_unsent, N_WORDS * 100, N_WORDS * 300);
        assert_int_equal(s.unsent_bytes, 0);
    }
    end(&s);
}

/* When others hold all memory, the answer is refused before its words are in the way of theirs. */
static void words_without_room_are_refused(void **state)
{
    struct server s;
    json_t *json, *result;
    (void)state;
    begin(&s);
    s.unsent_bytes = LIMIT_UNSENT_ALL;
    assert_int_equal(ask(&s, &speech, SPEECH, &json), 503);
    json_decref(json);
    assert_int_equal(s.unsent_bytes, LIMIT_UNSENT_ALL);
    assert_true(most_unsent < LIMIT_UNSENT_ALL + (LIMIT_WHOLE_SMALL * 5) / 4);
    assert_int_equal(ask(&s, &batch, BATCH, &json), 200);
    result = json_array_get(json_object_get(json, "results"), 0);
    assert_string_equal(json_string_value(json_object_get(result, "status")), "error");
    json_decref(json);
    assert_int_equal(s.unsent_bytes, LIMIT_UNSENT_ALL);
    s.unsent_bytes = 0;
    end(&s);
}

/* Of 40,000 words: their text, and a buffer that has grown to twice of it; as a tree of JSON they took 60 MB. */
static void an_answer_is_made_in_little_memory(void **state)
{
    enum { MOST_KB = 16 << 10 };
    struct word_list list = {0};
    struct wire_out out = {0};
    struct rusage before, after;
    struct speech_word *words = test_calloc(N_WORDS, sizeof *words);
    const struct speech_words all = {0, words, N_WORDS, false};
    (void)state;
    for (size_t i = 0; i < N_WORDS; i++) {
        words[i] = (struct speech_word){
            i % 9, 1, 0.37 * (double)i, 0.37 * (double)i + 0.31, 0.875f, true, false};
    }
    word_list_take(&list, &all);
    assert_in_range(word_list_needs(&list), N_WORDS * 100, N_WORDS * 300);
    getrusage(RUSAGE_SELF, &before);
    word_list_write(&list, "wwwwwwwww", 9, &out);
    getrusage(RUSAGE_SELF, &after);
    print_message("%d words: %ld ms of a processor, %ld KB more at the peak, %zu bytes\n", N_WORDS,
        (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000 +
            (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1000,
        after.ru_maxrss - before.ru_maxrss, out.n);
    assert_true(!out.failed && out.n + word_list_size(&list) <= word_list_needs(&list));
    if (!SUPPORT_SANITIZED) {
        assert_true(after.ru_maxrss - before.ru_maxrss < MOST_KB);
    }
    wire_fini(&out);
    word_list_fini(&list);
    test_free(words);
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), answer);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_made_in_little_memory), /* first: the peak is the process's */
        cmocka_unit_test(words_are_counted),
        cmocka_unit_test(words_without_room_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
