/* SPDX-License-Identifier: Apache-2.0
 * A queue in a nats-server of the test's own, where one is installed: lines in and out, what is given back, what others
 * put there, and a stream that is lost. */
#include "tests/support.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job/queue.h"
#if __has_include(<nats/nats.h>)
#include "job/queue_nats.h"
#endif

static const char program[] = "/usr/sbin/nats-server";
static pid_t server;
static uint16_t port;
static char store[64];

/* ---- The server ---- */

static int connect_to_server(void)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void start_server(void)
{
    char number[8];
    snprintf(number, sizeof number, "%u", port);
    server = fork();
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is ended leaves nothing behind */
        execl(program, program, "-js", "-a", "127.0.0.1", "-p", number, "-sd", store, "-l", "/dev/null",
            (char *)NULL);
        _exit(127);
    }
    int fd = -1;
    for (int i = 0; i < 12000 && fd < 0; i++) { /* a minute, for what never comes */
        pause_a_little();
        fd = connect_to_server();
    }
    assert_true(fd >= 0);
    close(fd);
}

static void end_server(void)
{
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
    server = 0;
}

static int begin_group(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    if (access(program, X_OK) != 0) {
        return 0;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&at, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        return -1;
    }
    port = ntohs(at.sin_port);
    close(fd);
    snprintf(store, sizeof store, "%.50s", support_path("nats"));
    start_server();
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    end_server();
    return 0;
}

/* ---- Lines ---- */

static const char first_name[] = "0123456789abcdef0123", second_name[] = "fedcba98765432100123";

#if __has_include(<nats/nats.h>)
static void stay(void)
{
}
#endif

/* A process opens one queue in its life, at whose end the library ends: it can not always begin anew. Here it stays. */
static void keep_library(struct queue *queue)
{
#if __has_include(<nats/nats.h>)
    nats_of(queue)->n.Close = stay;
#else
    (void)queue;
#endif
}

static struct queue *open_queue(const char *name, bool make)
{
    char url[128];
    struct queue *queue;
    utter_error error;
    snprintf(url, sizeof url, "nats://127.0.0.1:%u/%s", port, name);
    utter_status status = server ? queue_open(&queue, url, make, &error) : UTTER_E_DEVICE;
    if (status == UTTER_E_DEVICE) {
        skip();
    }
    if (status) {
        fail_msg("%s", error.text);
    }
    keep_library(queue);
    assert_true(queue->pause_s == 2);
    return queue;
}

static void make_line(char key[IDENTITY_SIZE], char wire[256], unsigned number)
{
    snprintf(key, IDENTITY_SIZE, "%015x%049x", number, number);
    snprintf(wire, 256, "{\"key\":\"%s\",\"text\":\"Hello.\"}", key);
}

static void put(struct queue *queue, unsigned number)
{
    char key[IDENTITY_SIZE], wire[256];
    make_line(key, wire, number);
    assert_int_equal(queue->calls->put(queue, key, wire, NULL), UTTER_OK);
}

static void submit(const char *queue_name, const char *name, unsigned first, unsigned last)
{
    struct queue *queue = open_queue(queue_name, true);
    assert_int_equal(queue->calls->begin(queue, name, NULL), UTTER_OK);
    for (unsigned i = first; i <= last; i++) {
        put(queue, i);
    }
    assert_int_equal(queue->calls->flush(queue, NULL), UTTER_OK);
    queue_close(&queue);
    assert_null(queue);
}

/* The next line, which the server may need a while for. */
static void assert_claimed(struct queue *queue, struct claim *claim, unsigned number)
{
    char key[IDENTITY_SIZE], wire[256];
    utter_error error;
    utter_status status = UTTER_AGAIN;
    make_line(key, wire, number);
    memset(claim, 'x', sizeof *claim);
    for (int i = 0; i < 400 && status == UTTER_AGAIN; i++) {
        status = queue->calls->claim(queue, claim, &error);
    }
    assert_int_equal(status, UTTER_OK);
    assert_string_equal(claim->key, key);
    assert_int_equal(claim->bytes, strlen(wire));
    assert_memory_equal(claim->wire, wire, claim->bytes);
}

/* Until the server counts so: what it was told last may be on its way. */
static void assert_counts(struct queue *queue, uint64_t waiting, uint64_t claimed)
{
    struct queue_counts counts;
    utter_status status = UTTER_AGAIN;
    for (int i = 0; i < 400; i++) {
        status = queue->calls->count(queue, &counts, NULL);
        assert_true(status >= 0);
        if (status == UTTER_OK && counts.waiting == waiting && counts.claimed == claimed) {
            break;
        }
        pause_a_little();
    }
    assert_int_equal(status, UTTER_OK);
    assert_int_equal(counts.waiting, waiting);
    assert_int_equal(counts.claimed, claimed);
    assert_true(!counts.all && counts.done == 0 && counts.failed == 0);
}

static void lines_are_claimed_in_their_order_and_end(void **state)
{
    (void)state;
    struct claim claims[3], none;
    submit("order-_Z9", first_name, 1, 3);
    struct queue *queue = open_queue("order-_Z9", false);
    assert_counts(queue, 3, 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_claimed(queue, &claims[i], i + 1);
        assert_int_equal(claims[i].tries, 0);
        assert_int_equal(claims[i].deaths, 0);
    }
    assert_counts(queue, 0, 3);
    assert_int_equal(queue->calls->claim(queue, &none, NULL), UTTER_AGAIN);
    assert_int_equal(queue->calls->extend(queue, &claims[0], NULL), UTTER_OK);
    assert_int_equal(queue->calls->done(queue, &claims[0], false, NULL), UTTER_OK);
    assert_null(claims[0].place);
    assert_int_equal(queue->calls->done(queue, &claims[1], true, NULL), UTTER_OK);
    assert_counts(queue, 0, 1);
    assert_int_equal(queue->calls->done(queue, &claims[2], false, NULL), UTTER_OK);
    assert_counts(queue, 0, 0);
    queue_close(&queue);
}

static void tries_and_deaths_go_along_with_what_is_given_back(void **state)
{
    (void)state;
    static const struct {
        int deaths;
        bool failed;
        int tries, then; /* of the next claim */
    } rounds[] = {{0, true, 1, 0}, {0, false, 1, 0}, {2, false, 1, 2}, {2, true, 2, 2},
        {255, false, 2, 255}, {256, false, 2, 0}}; /* no small number is none */
    struct claim one;
    submit("back", first_name, 7, 7);
    struct queue *queue = open_queue("back", false);
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        assert_claimed(queue, &one, 7);
        one.deaths = rounds[i].deaths;
        assert_int_equal(queue->calls->back(queue, &one, rounds[i].failed, NULL), UTTER_OK);
        assert_null(one.place);
        assert_counts(queue, 1, 0);
        assert_claimed(queue, &one, 7);
        assert_int_equal(one.tries, rounds[i].tries);
        assert_int_equal(one.deaths, rounds[i].then);
        assert_int_equal(queue->calls->back(queue, &one, false, NULL), UTTER_OK);
    }
    queue_close(&queue);
}

static void a_submission_replaces_what_waits_of_its_own(void **state)
{
    (void)state;
    struct claim one;
    submit("again", first_name, 1, 3);
    submit("again", second_name, 10, 10);
    submit("again", first_name, 1, 2);
    submit("again", "0123456789abcdefother", 5, 5); /* of which 16 letters count */
    struct queue *queue = open_queue("again", false);
    assert_counts(queue, 2, 0);
    assert_claimed(queue, &one, 10);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_claimed(queue, &one, 5);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_counts(queue, 0, 0);
    queue_close(&queue);
}

/* The same line in one submission is one message. */
static void what_is_put_twice_is_there_once(void **state)
{
    (void)state;
    struct queue *queue = open_queue("twice", true);
    assert_int_equal(queue->calls->begin(queue, first_name, NULL), UTTER_OK);
    put(queue, 1);
    put(queue, 1);
    put(queue, 2);
    assert_int_equal(queue->calls->flush(queue, NULL), UTTER_OK);
    assert_counts(queue, 2, 0);
    queue_close(&queue);
}

static void what_others_put_there_goes(void **state)
{
    (void)state;
    static const char text[] =
        "{\"key\":\"../../../../../../../../../../../../../../../../../../../../etc/passwd\"}";
    char message[512], answer[64];
    struct claim none;
    submit("others", first_name, 1, 0);
    int fd = connect_to_server();
    int n = snprintf(message, sizeof message,
        "CONNECT {\"verbose\":false}\r\nPUB others.lines.x %zu\r\n%s\r\nPING\r\n", sizeof text - 1,
        text);
    assert_int_equal(send(fd, message, (size_t)n, MSG_NOSIGNAL), n);
    assert_true(recv(fd, answer, sizeof answer, 0) > 0);
    struct queue *queue = open_queue("others", false);
    assert_counts(queue, 1, 0);
    struct queue_counts counts = {.waiting = 1};
    for (int i = 0; i < 400 && counts.waiting + counts.claimed > 0; i++) {
        assert_int_equal(queue->calls->claim(queue, &none, NULL), UTTER_AGAIN);
        assert_int_equal(queue->calls->count(queue, &counts, NULL), UTTER_OK);
    }
    assert_counts(queue, 0, 0);
    close(fd);
    queue_close(&queue);
}

/* A worker that waits for a queue which is not there yet gets its first line. */
static void a_queue_may_come_after_its_workers(void **state)
{
    (void)state;
    struct claim one;
    struct queue *queue = open_queue("late", false);
    struct queue_counts counts;
    assert_int_equal(queue->calls->claim(queue, &one, NULL), UTTER_AGAIN);
    assert_int_equal(queue->calls->count(queue, &counts, NULL), UTTER_OK);
    assert_int_equal(counts.waiting + counts.claimed, 0);
    queue_close(&queue);
    submit("late", first_name, 4, 4);
    queue = open_queue("late", false);
    assert_claimed(queue, &one, 4);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    queue_close(&queue);
}

static void an_address_names_a_host_and_a_queue(void **state)
{
    (void)state;
    static const char *const wrong[] = {"nats://", "nats:///name", "nats://127.0.0.1:1/a.b",
        "nats://127.0.0.1:1/a b", "nats://127.0.0.1:1/a/b", "tls://",
        "nats://127.0.0.1:1/0123456789012345678901234567890123456789012345678901234567890123"};
    struct queue *queue;
    utter_error error;
    if (queue_open(&queue, wrong[0], false, &error) == UTTER_E_DEVICE) {
        skip();
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(queue_open(&queue, wrong[i], false, &error), UTTER_E_ARGUMENT);
        assert_string_equal(error.text,
            "--queue: is not nats://HOST[:PORT][/NAME], whose NAME has letters, digits, - "
            "and _");
        assert_null(queue);
    }
    static const char *const silent[] = {"nats://ann:secret@127.0.0.1:1/q", "nats://127.0.0.1:1",
        "nats://127.0.0.1:1/012345678901234567890123456789012345678901234567890123456789012"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(queue_open(&queue, silent[i], false, &error), UTTER_E_IO);
        assert_non_null(strstr(error.text, "--queue "));
        assert_null(strstr(error.text, "secret"));
        assert_non_null(strstr(error.text, "127.0.0.1:1: cannot be reached: "));
        assert_non_null(strstr(error.text, " (is a nats-server there?)"));
        assert_null(queue);
    }
}

/* The server ends, and what is said of a claim then does not reach it. */
static void a_server_that_is_away_costs_no_line(void **state)
{
    (void)state;
    struct claim one, two, none;
    utter_error error;
    struct queue_counts counts;
    submit("away", first_name, 1, 2);
    struct queue *queue = open_queue("away", false);
    assert_claimed(queue, &one, 1);
    assert_claimed(queue, &two, 2);
    end_server();
    utter_status status = UTTER_OK;
    for (int i = 0; i < 12000 && status == UTTER_OK;
         i++) { /* until the connection is seen to be gone */
        pause_a_little();
        status = queue->calls->count(queue, &counts, &error);
    }
    assert_int_equal(status, UTTER_AGAIN);
    assert_non_null(strstr(error.text, "--queue: away cannot be asked: "));
    assert_int_equal(queue->calls->claim(queue, &none, NULL), UTTER_AGAIN);
    assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_int_equal(queue->calls->back(queue, &two, true, NULL), UTTER_OK);
    assert_null(one.place);
    assert_null(two.place);
    queue_close(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_claimed_in_their_order_and_end),
        cmocka_unit_test(tries_and_deaths_go_along_with_what_is_given_back),
        cmocka_unit_test(a_submission_replaces_what_waits_of_its_own),
        cmocka_unit_test(what_is_put_twice_is_there_once), cmocka_unit_test(what_others_put_there_goes),
        cmocka_unit_test(a_queue_may_come_after_its_workers),
        cmocka_unit_test(a_server_that_is_away_costs_no_line),
        cmocka_unit_test(an_address_names_a_host_and_a_queue), /* the last, which ends the library */
    };
    return cmocka_run_group_tests_name("queue_nats", tests, begin_group, end_group);
}
