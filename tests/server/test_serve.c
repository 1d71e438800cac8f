/* SPDX-License-Identifier: Apache-2.0
 * The life of a front end: why it cannot begin, what it announces and when, who is let in, what its days bring. How it
 * ends: test_serve_end.c. */
#include "tests/server/posed_serve.h"

/* ---- Its beginning ---- */

/* Millions of bytes, with one worker of four lanes: 29 speeches, eight connections of 88 KiB for each ninth place. */
static void assert_announces(const char *host, const char *model, int connections, int megabytes)
{
    char wanted[1000];
    begin(NULL);
    const char *line = announced();
    snprintf(wanted, sizeof wanted,
        "utter: ready on http://%s:%d, model %s (cuda, bf16), 4 lanes, 8 may wait, "
        "%d connections, keys off, the front end takes at most %d MB",
        host, served.port, model, connections, megabytes);
    assert_string_equal(line, wanted);
    assert_true(served.port > 0);
    assert_false(has_said(0)); /* once */
    assert_int_equal(stopped(SIGTERM), 0);
}

static void it_says_what_it_serves(void **state)
{
    static const struct {
        const char *path, *name;
    } models[] = {{"posed", "posed"}, {"a/b/tiny.model", "tiny.model"}, {"a/tiny//", "tiny"},
        {"a/", "a"}, {"/", ""}, {"a/q\"b\\c\037d~\177", "q_b_c_d~\177"}, {"\303\274\"", "\303\274_"},
        {"\377a~\177", "_a~_"}};
    char path[300], name[300];
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        usual();
        options.model = models[i].path;
        files = (struct rlimit){154, 154};
        assert_announces("127.0.0.1", models[i].name, 80, 900);
    }
    for (size_t n = 125; n <= 126; n++) { /* a name has 127 bytes: its last letter has two */
        usual();
        options.model = path;
        files = (struct rlimit){154, 154};
        memset(path, 'a', n);
        memset(name, 'a', n);
        snprintf(path + n, sizeof path - n, "\303\274");
        snprintf(name + n, sizeof name - n, n == 125 ? "\303\274" : "_");
        assert_announces("127.0.0.1", name, 80, 900);
    }
}

/* Some machines have no IPv6. */
static void it_listens_where_it_is_told(void **state)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;
    usual();
    files = (struct rlimit){154, 154};
    options.host = "0.0.0.0";
    options.insecure = true;
    assert_announces("0.0.0.0", "posed", 80, 900);
    if (six >= 0 && bind(six, (struct sockaddr *)&at, sizeof at) == 0) {
        usual();
        files = (struct rlimit){154, 154};
        options.host = "::1";
        assert_announces("[::1]", "posed", 80, 900);
    }
    close(six);
}

static void it_has_as_many_places_as_there_may_be_files(void **state)
{
    static const struct {
        rlim_t now, most;
        int places, megabytes;
    } rows[] = {{70, 70, PLACES, 894}, {81, 81, 16, 894}, {100, 154, 80, 900}, {154, 4671, 4096, 1262},
        {4700, 4700, 4096, 1262}};
    struct rlimit allowed;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &allowed), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        usual();
        files = (struct rlimit){rows[i].now, rows[i].most};
        if (allowed.rlim_max >= rows[i].most) {
            assert_announces("127.0.0.1", "posed", rows[i].places, rows[i].megabytes);
        }
    }
}

/* As many as it may have: what it has is raised. */
static void it_takes_the_files_that_it_may_have(void **state)
{
    struct rlimit has;
    (void)state;
    usual();
    files = (struct rlimit){100, 154};
    begin(NULL);
    announced();
    assert_int_equal(prlimit(served.pid, RLIMIT_NOFILE, NULL, &has), 0);
    assert_true(has.rlim_cur == 154 && has.rlim_max == 154);
    assert_int_equal(stopped(SIGTERM), 0);
}

/* One of these ports is taken: by the test. */
static void who_cannot_begin_says_why(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;
    assert_int_equal(bind(taken, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(taken, 1), 0);
    assert_int_equal(getsockname(taken, (struct sockaddr *)&at, &bytes), 0);
    char in_use[200], no_host[72], no_name[100]; /* part of a name has 63 letters at most */
    memset(no_host, 'a', sizeof no_host - 1);
    no_host[sizeof no_host - 1] = 0;
    snprintf(no_name, sizeof no_name, "utter: --host %s: ", no_host);
    snprintf(in_use, sizeof in_use,
        "utter: 127.0.0.1 port %d: Address already in use "
        "(another program listens there: --port N takes another)\n",
        ntohs(at.sin_port));
    const struct {
        const char *host;
        int port;
        const char *keys, *voices, *map, *wyoming, *why;
    } rows[] = {
        {.host = "127.0.0.1", .port = ntohs(at.sin_port), .why = in_use},
        {.host = "192.0.2.1",
            .why = "utter: --host 192.0.2.1: others could use this server without a key (give "
                   "--api-key-file FILE, or --insecure)\n"},
        {.host = no_host, .why = no_name},
        {.host = "127.0.0.1",
            .keys = "no/file",
            .why = "utter: no/file: cannot open: No such file or directory (check the name)\n"},
        {.host = "127.0.0.1",
            .voices = "no/folder",
            .why = "utter: --voices no/folder: No such file or directory "
                   "(make the folder first, or check the name)\n"},
        {.host = "127.0.0.1",
            .map = "no/map",
            .why = "utter: no/map: cannot open: No such file or directory (check the name)\n"},
        {.host = "127.0.0.1",
            .wyoming = "udp://",
            .why = "utter: --wyoming udp://: must be tcp://HOST:PORT (tcp://127.0.0.1:10200)\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        usual();
        options.host = rows[i].host;
        options.port = rows[i].port;
        options.key_file = rows[i].keys;
        options.voices = rows[i].voices;
        options.voice_map = rows[i].map;
        options.wyoming = rows[i].wyoming;
        begin(NULL);
        assert_string_equal(announced(), "");
        assert_int_equal(end_of(), 1);
        char *log = written();
        if (strncmp(log, rows[i].why, strlen(rows[i].why)) != 0) {
            fail_msg("row %zu: %s", i, log);
        }
        free(log);
    }
    close(taken);
}

/* Those of all workers cannot be opened. */
static void who_has_no_worker_ends(void **state)
{
    static const char *const devices[] = {"cuda:9", "cuda:9"};
    (void)state;
    usual();
    options.devices = devices;
    options.n_devices = 2;
    begin(NULL);
    assert_string_equal(announced(), "");
    assert_int_equal(end_of(), 2);
    logs("utter: no such GPU\n", 2);
}

/* It is tried again by itself. */
static void who_dies_as_it_opens_the_model_is_tried_again(void **state)
{
    static const char *const devices[] = {"cuda:8"};
    (void)state;
    usual();
    setenv(ENDS, "/", 1);
    options.devices = devices;
    begin(NULL);
    assert_string_equal(announced(), "");
    assert_int_equal(end_of(), 2);
    logs("\"event\":\"worker_lost\"", 3);
    logs("utter: the model has never been open: 3 workers died as they opened it, or took too long", 1);
}

static long lacking; /* the allocation, or the thread */
static enum support_call of;

static void lack(void)
{
    support_fail_at(of, lacking);
}

/* What is not needed until later may be there again then; else it says why it ends. */
static void what_lacks_as_it_begins_is_told(void **state)
{
    static const long most[] = {[SUPPORT_MALLOC] = 48, [SUPPORT_THREAD] = 2};
    (void)state;
    for (of = SUPPORT_MALLOC; of <= SUPPORT_THREAD; of += SUPPORT_THREAD - SUPPORT_MALLOC) {
        for (lacking = 1; lacking <= most[of]; lacking += SUPPORT_SANITIZED ? 7 : 1) {
            usual();
            begin(lack);
            const bool is_ready = announced()[0] != 0;
            const int code = is_ready ? stopped(SIGTERM) : end_of();
            char *log = written();
            const bool cannot = strstr(log, "utter: the server cannot start: ") != NULL ||
                                strstr(log, "utter: no worker can be started: ") != NULL;
            if (is_ready               ? code != 0
                : of == SUPPORT_THREAD ? !cannot || code != 2
                : cannot               ? code != 2
                                       : code != 1 || !strstr(log, "utter: ")) {
                fail_msg("%ld: %d: %s", lacking, code, log);
            }
            free(log);
        }
    }
}

/* The last of two workers may still open the model: what the server has is said when that is known. */
static void it_announces_when_all_is_known(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:8"};
    char ends[200];
    (void)state;
    usual();
    snprintf(ends, sizeof ends, "%s", support_path("ends"));
    setenv(ENDS, ends, 1);
    options.devices = devices;
    options.n_devices = 2;
    begin(NULL);
    logs("\"event\":\"worker_ready\"", 1);
    assert_false(has_said(0));
    support_write_file(ends, "", 0);
    assert_non_null(strstr(announced(), ", 4 lanes,"));
    assert_int_equal(stopped(SIGTERM), 0);
    unlink(ends);
}

static void sockets_are_set_as_speech_needs_it(void **state)
{
    (void)state;
    usual();
    begin(NULL);
    announced();
    assert_int_equal(shared->no_delay, 1);
    assert_int_equal(shared->send_bytes, 32 << 10);
    assert_int_equal(stopped(SIGINT), 0);
}

/* ---- Its days ---- */

static void a_hangup_has_files_read_again(void **state)
{
    char keys[200], map[200];
    (void)state;
    usual();
    snprintf(keys, sizeof keys, "%s", support_path("keys"));
    snprintf(map, sizeof map, "%s", support_path("map"));
    support_write_file(keys, "sesame\n", 7);
    support_write_file(map, "{}", 2);
    options.key_file = keys;
    options.voice_map = map;
    begin(NULL);
    assert_non_null(strstr(announced(), ", keys asked for, "));
    assert_int_equal(status_of(SPEECH, "sesame", SAYS), 200);
    assert_int_equal(status_of(SPEECH, "other", SAYS), 401);
    assert_int_equal(status_of(SPEAKS_AS "somebody", "sesame", "{\"text\":\"Hi\"}"), 404);
    support_write_file(keys, "other\n", 6);
    support_write_file(map, "{\"*\":{\"somebody\":\"miles\"}}", 26);
    kill(served.pid, SIGHUP);
    int status = 0;
    for (double until = clock_seconds() + LONG_S; status != 200 && clock_seconds() < until;) {
        status = status_of(SPEECH, "other", SAYS);
    }
    assert_int_equal(status, 200);
    assert_int_equal(status_of(SPEECH, "sesame", SAYS), 401);
    assert_int_equal(status_of(SPEAKS_AS "somebody", "other", "{\"text\":\"Hi\"}"), 200);
    assert_int_equal(stopped(SIGTERM), 0);
}

static void a_worker_that_is_killed_is_replaced(void **state)
{
    (void)state;
    usual();
    begin(NULL);
    announced();
    char *log = written();
    const char *pid = strstr(log, "\"pid\":");
    assert_non_null(pid);
    assert_int_equal(kill(atoi(pid + 6), SIGKILL), 0);
    free(log);
    logs("\"event\":\"worker_killed\",\"worker\":0,", 1);
    logs("\"event\":\"worker_ready\",\"worker\":0,", 2);
    assert_int_equal(status_of(SPEECH, NULL, SAYS), 200);
    assert_false(has_said(0)); /* that it is ready it has said */
    assert_int_equal(stopped(SIGTERM), 0);
}

/* Who waits for a lane waits so long; who asks nothing is not waited for. */
static void time_passes(void **state)
{
    int hearing[4];
    (void)state;
    usual();
    options.patience_ms = 5000;
    begin(NULL);
    announced();
    for (int i = 0; i < 4; i++) {
        hearing[i] = come_and_wait();
    }
    step(0);
    const int waiting = come();
    ask(waiting, SPEECH, NULL, SAYS);
    counts("\ntts_requests_queued 1\n");
    step(7);
    assert_non_null(strstr(heard(waiting), "no lane became free in time"));
    const int silent = come();
    counts("\ntts_requests_queued 0\n");
    step(1000);
    assert_string_equal(heard(silent), "");
    for (int i = 0; i < 4; i++) {
        close(hearing[i]);
    }
    assert_int_equal(stopped(SIGTERM), 0);
}

/* All places are taken: told once a second. */
static void who_comes_when_all_is_taken(void **state)
{
    static const char gone[] = "\"event\":\"connections_full\",\"connections\":14,\"newcomer\":"
                               "\"127.0.0.1\",\"what\":\"the one least at work has gone\"}\n",
                      away[] = "\"event\":\"connections_full\",\"connections\":15,\"newcomer\":"
                               "\"127.0.0.1\",\"what\":\"the newcomer is turned away\"}\n";
    int taken[PLACES];
    (void)state;
    usual();
    files = (struct rlimit){PLACES_FILES, PLACES_FILES};
    options.queue = PLACES;
    begin(NULL);
    announced();
    step(0);
    for (int i = 0; i < PLACES; i++) {
        taken[i] = come();
    }
    counts("\ntts_connections_crowded_total 1\n"); /* whoever asks for it has the first one's place */
    assert_string_equal(heard(taken[0]), "");
    logs(gone, 1);
    taken[0] = come();
    for (int i = 0; i < PLACES; i++) {
        ask(taken[i], SPEECH, NULL, WAITS);
    }
    step(1);
    logs(gone, 1);
    for (int n = 0; n < 3; n++) {
        assert_non_null(strstr(heard(come()), "there is no room"));
        logs(away, n ? n : 1);
        step(n);
    }
    for (int i = 0; i < PLACES; i++) {
        close(taken[i]);
    }
    assert_int_equal(stopped(SIGTERM), 0);
}

static void other_words_start_nothing(void **state)
{
    static char worker[] = "serve-worker", clone[] = "serve-clone", other[] = "serve", number[] = "-1";
    char *words[][5] = {{worker, number, number}, {clone, number}, {other, number},
        {other, number, number, number, number}};
    static const int n[] = {3, 2, 2, 5};
    (void)state;
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        assert_int_equal(serve_child(n[i], words[i]), -1);
    }
}

static int pair[2]; /* this process, and the one that it starts */

static void be_a_worker(void)
{
    static char worker[] = "serve-worker", number[12];
    char *words[] = {worker, number, NULL};
    close(pair[0]);
    snprintf(number, sizeof number, "%d", pair[1]);
    _exit(serve_child(2, words));
}

/* It says so on the socket whose number it was given. */
static void a_worker_without_a_model_refuses(void **state)
{
    const struct wire_hello hello = {.version = WIRE_VERSION, .model = "no/model", .device = "cpu"};
    struct wire_out out = {0};
    struct wire_message m;
    struct wire_failed failed;
    uint8_t bytes[4096];
    size_t used;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    wire_put_hello(&out, &hello);
    assert_int_equal(send(pair[0], out.bytes, out.n, 0), out.n);
    wire_fini(&out);
    const int code = support_child_end(be_a_worker);
    close(pair[1]);
    const ssize_t n = recv(pair[0], bytes, sizeof bytes, 0);
    close(pair[0]);
    assert_true(n > 0 && wire_read(&m, bytes, (size_t)n, &used) == WIRE_MESSAGE);
    assert_true(m.kind == WIRE_REFUSED && wire_get_failed(&failed, &m) && code == 1);
    assert_non_null(strstr(failed.text, "no/model"));
}

static void make_a_voice(void)
{
    static char clone[] = "serve-clone", model[] = "build/checkpoints/tiny06-base", base[] = "no/base",
                voice[] = "no/voice", open[] = "open";
    char *words[] = {clone, model, base, voice, open, NULL};
    close(pair[0]);
    if (dup2(pair[1], SPAWN_SOCKET) >= 0 && dup2(pair[1], STDERR_FILENO) >= 0) {
        _exit(serve_child(5, words));
    }
    _exit(100);
}

/* The model is there, the recording is not. */
static void a_voice_is_made_of_what_is_named(void **state)
{
    char said[1000] = "";
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(send(pair[0], "Ann\0", 5, 0), 5);
    shutdown(pair[0], SHUT_WR);
    const int code = support_child_end(make_a_voice);
    close(pair[1]);
    assert_true(recv(pair[0], said, sizeof said - 1, 0) > 0);
    close(pair[0]);
    assert_int_equal(code, 1);
    assert_string_equal(said, "cannot open: No such file or directory (check the name)\n");
}

int main(int n, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_what_it_serves),
        cmocka_unit_test(it_listens_where_it_is_told),
        cmocka_unit_test(it_has_as_many_places_as_there_may_be_files),
        cmocka_unit_test(it_takes_the_files_that_it_may_have),
        cmocka_unit_test(who_cannot_begin_says_why),
        cmocka_unit_test(who_has_no_worker_ends),
        cmocka_unit_test(who_dies_as_it_opens_the_model_is_tried_again),
        cmocka_unit_test(what_lacks_as_it_begins_is_told),
        cmocka_unit_test(it_announces_when_all_is_known),
        cmocka_unit_test(sockets_are_set_as_speech_needs_it),
        cmocka_unit_test(a_hangup_has_files_read_again),
        cmocka_unit_test(a_worker_that_is_killed_is_replaced),
        cmocka_unit_test(time_passes),
        cmocka_unit_test(who_comes_when_all_is_taken),
        cmocka_unit_test(a_worker_without_a_model_refuses),
        cmocka_unit_test(a_voice_is_made_of_what_is_named),
        cmocka_unit_test(other_words_start_nothing),
    };
    const int code = posed_begins(n, arguments);
    return code >= 0 ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
