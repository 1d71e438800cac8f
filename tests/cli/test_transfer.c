/* SPDX-License-Identifier: Apache-2.0
 * Files over HTTP from a server that a thread poses: what is asked for, and what its answers mean to who may ask again.
 * And where the hub is, by the environment. */
#include "base/error.h"
#include "cli/model/hub_place.h"
#include "cli/model/transfer.h"
#include "tests/cli/posed_server.h"

/* ---- The server ---- */

enum { N_KEPT = 2 };

static struct {
    char url[64];
    pthread_mutex_t lock; /* of what follows */
    /* Of the first request and of all later ones. */
    const char *answers[N_KEPT];
    char asked[N_KEPT][2048];
    int n_asked;
} posed = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *answer(const char *request, size_t *bytes)
{
    pthread_mutex_lock(&posed.lock);
    int i = posed.n_asked++ > 0;
    const char *answer = posed.answers[i];
    snprintf(posed.asked[i], sizeof posed.asked[i], "%s", request);
    pthread_mutex_unlock(&posed.lock);
    *bytes = strlen(answer);
    return answer;
}

static int start(void **state)
{
    (void)state;
    int failed = server_start(answer);
    snprintf(posed.url, sizeof posed.url, "http://127.0.0.1:%d/file", server.port);
    return failed;
}

static void pose(const char *first, const char *later)
{
    pthread_mutex_lock(&posed.lock);
    posed.answers[0] = first;
    posed.answers[1] = later;
    posed.n_asked = 0;
    memset(posed.asked, 0, sizeof posed.asked);
    pthread_mutex_unlock(&posed.lock);
}

#define ANSWER(line) "HTTP/1.1 " line "\r\nConnection: close\r\n\r\nbody"

/* ---- Who asks ---- */

static struct {
    char bytes[64];
    uint64_t from; /* the answer begins here, as the sink saw it */
    utter_status status;
    bool stopped;
    int n_alive;
} got;

static uint64_t from;
static struct transfer *transfer;
static utter_error why;

static utter_status sink(void *user, const void *data, size_t bytes, utter_error *error)
{
    assert_ptr_equal(user, &got);
    size_t n = strlen(got.bytes);
    assert_true(n + bytes < sizeof got.bytes);
    memcpy(got.bytes + n, data, bytes);
    got.from = from;
    return got.status ? error_set(error, got.status, "full") : UTTER_OK;
}

static bool alive(void *user)
{
    assert_ptr_equal(user, &posed);
    got.n_alive++;
    return !got.stopped;
}

static void open_transfer(const char *token)
{
    utter_status status = transfer_open(&transfer, token, alive, &posed, &why);
    if (status == UTTER_E_DEVICE && !server_can_be_asked()) {
        assert_null(transfer);
        skip();
    }
    assert_int_equal(status, UTTER_OK);
}

static utter_status get(const char *url, uint64_t begin)
{
    utter_status status = got.status;
    bool stopped = got.stopped;
    memset(&got, 0, sizeof got);
    memset(&why, 0, sizeof why);
    got.status = status;
    got.stopped = stopped;
    got.from = UINT64_MAX;
    from = begin;
    return transfer_get(transfer, url, &from, sink, &got, &why);
}

static void assert_asked(int i, const char *part, bool is_there)
{
    if ((strstr(posed.asked[i], part) != NULL) != is_there) {
        fail_msg("%s in %s", part, posed.asked[i]);
    }
}

/* ---- Answers ---- */

static void an_answer_means(void **state)
{
    (void)state;
    static const char token[] =
        ": put a token into HF_TOKEN, of somebody who has accepted the model's terms";
    static const struct {
        const char *answer;
        utter_status status;
        const char *why;
        uint64_t from; /* in the end, of 5 that were there */
    } rows[] = {
        {ANSWER("200 OK"), UTTER_OK, NULL, 0},
        {ANSWER("206 Partial Content"), UTTER_OK, NULL, 5},
        {ANSWER("299 Odd"), UTTER_OK, NULL, 5},
        {ANSWER("300 Multiple Choices"), UTTER_E_FILE, "the server answers 300", 5},
        {ANSWER("400 Bad Request"), UTTER_E_FILE, "the server answers 400", 5},
        {ANSWER("401 Unauthorized"), UTTER_E_FILE, "the server wants to know who asks (401)", 5},
        {ANSWER("402 Payment Required"), UTTER_E_FILE, "the server answers 402", 5},
        {ANSWER("403 Forbidden"), UTTER_E_FILE, "the server wants to know who asks (403)", 5},
        {ANSWER("404 Not Found"), UTTER_E_FILE, "there is no such thing (404; check the name)", 5},
        {ANSWER("408 Request Timeout"), UTTER_AGAIN, "the server answers 408 (later it may be better)",
            5},
        {ANSWER("416 Range Not Satisfiable"), UTTER_E_FILE, "the server answers 416", 5},
        {ANSWER("429 Too Many Requests"), UTTER_AGAIN,
            "the server answers 429 (later it may be better)", 5},
        {ANSWER("499 Odd"), UTTER_E_FILE, "the server answers 499", 5},
        {ANSWER("500 Internal Server Error"), UTTER_AGAIN,
            "the server answers 500 (later it may be better)", 5},
        {ANSWER("503 Service Unavailable"), UTTER_AGAIN,
            "the server answers 503 (later it may be better)", 5},
        /* A refusal is one also where its page is cut. */
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nbody", UTTER_E_FILE,
            "there is no such thing (404; check the name)", 5},
    };
    open_transfer(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[512] = "";
        pose(rows[i].answer, rows[i].answer);
        assert_int_equal(get(posed.url, 5), rows[i].status);
        if (rows[i].why) {
            snprintf(wanted, sizeof wanted, "%s: %s%s", posed.url, rows[i].why,
                strstr(rows[i].why, "who asks") ? token : "");
        }
        assert_string_equal(why.text, wanted);
        assert_int_equal(from, rows[i].from);
        /* The page of a refusal is no part of the file; of a whole file the sink knows before its first byte. */
        assert_string_equal(got.bytes, rows[i].why ? "" : "body");
        assert_true(got.from == (rows[i].why ? UINT64_MAX : rows[i].from));
        assert_int_equal(posed.n_asked, 1);
        assert_true(got.n_alive > 0);
    }
    transfer_close(&transfer);
    assert_null(transfer);
    transfer_close(&transfer);
}

static void what_ends_early_may_go_on_later(void **state)
{
    (void)state;
    int quiet;
    char wanted[128], url[64];
    open_transfer(NULL);
    pose("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbody", "");
    assert_int_equal(get(posed.url, 0), UTTER_AGAIN);
    snprintf(wanted, sizeof wanted, "%s: ", posed.url);
    assert_int_equal(strncmp(why.text, wanted, strlen(wanted)), 0);
    assert_true(strlen(why.text) > strlen(wanted));
    assert_string_equal(got.bytes, "body");
    /* Nobody listens there; and what can never be. */
    int port = server_take_port(&quiet);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    assert_int_equal(get(url, 0), UTTER_AGAIN);
    assert_int_equal(strncmp(why.text, url, strlen(url)), 0);
    assert_int_equal(get("ftp://127.0.0.1/file", 0), UTTER_E_FILE);
    assert_int_equal(get("file:///etc/passwd", 0), UTTER_E_FILE);
    assert_string_equal(got.bytes, "");
    assert_int_equal(get("http://", 0), UTTER_E_FILE);
    close(quiet);
    transfer_close(&transfer);
}

static void who_takes_the_bytes_may_end_it(void **state)
{
    (void)state;
    open_transfer(NULL);
    pose(ANSWER("200 OK"), ANSWER("200 OK"));
    got.status = UTTER_E_IO;
    assert_int_equal(get(posed.url, 0), UTTER_E_IO);
    assert_string_equal(why.text, "full");
    got.status = UTTER_OK;
    got.stopped = true;
    assert_int_equal(get(posed.url, 0), UTTER_E_CANCELLED);
    assert_string_equal(why.text, "interrupted");
    got.stopped = false;
    assert_int_equal(get(posed.url, 0), UTTER_OK); /* neither lasts */
    assert_string_equal(got.bytes, "body");
    transfer_close(&transfer);
}

/* ---- Requests ---- */

static void a_request_says_who_asks_and_from_where(void **state)
{
    (void)state;
    static const struct {
        uint64_t from;
        const char *range;
    } rows[] = {{7, "\r\nRange: bytes=7-\r\n"}, {1, "\r\nRange: bytes=1-\r\n"},
        {5000000000, "\r\nRange: bytes=5000000000-\r\n"}, {0, NULL}};
    for (int known = 0; known < 2; known++) {
        open_transfer(known ? "secret" : NULL);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            pose(ANSWER("206 Partial Content"), "");
            assert_int_equal(get(posed.url, rows[i].from), UTTER_OK);
            assert_int_equal(strncmp(posed.asked[0], "GET /file HTTP/1.", 17), 0);
            assert_asked(0, "\r\nUser-Agent: utter\r\n", true);
            assert_asked(0, "\r\nAuthorization: Bearer secret\r\n", known);
            assert_asked(0, "\r\nAuthorization:", known);
            assert_asked(0, rows[i].range ? rows[i].range : "\r\nRange:", rows[i].range != NULL);
        }
        transfer_close(&transfer);
    }
}

static void a_redirect_is_followed_without_the_token(void **state)
{
    (void)state;
    char elsewhere[256];
    open_transfer("secret");
    pose("HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: /other\r\n\r\nmoved",
        ANSWER("206 Partial Content"));
    assert_int_equal(get(posed.url, 3), UTTER_OK);
    assert_string_equal(got.bytes, "body");
    assert_int_equal(posed.n_asked, 2);
    assert_int_equal(strncmp(posed.asked[1], "GET /other ", 11), 0);
    assert_asked(1, "\r\nRange: bytes=3-\r\n", true);
    assert_asked(1, "\r\nAuthorization: Bearer secret\r\n", true);
    /* Another host is not told who asks. */
    snprintf(elsewhere, sizeof elsewhere,
        "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: http://localhost:%d/other\r\n\r\n",
        server.port);
    pose(elsewhere, ANSWER("200 OK"));
    assert_int_equal(get(posed.url, 0), UTTER_OK);
    assert_int_equal(posed.n_asked, 2);
    assert_asked(0, "\r\nAuthorization:", true);
    assert_asked(1, "\r\nAuthorization:", false);
    /* Nor is one followed for ever, or to what is no server. */
    static const char *const wrong[] = {"/file", "ftp://127.0.0.1/file", "file:///etc/passwd"};
    for (int i = 0; i < 3; i++) {
        snprintf(elsewhere, sizeof elsewhere,
            "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: %s\r\n\r\n", wrong[i]);
        pose(elsewhere, elsewhere);
        assert_int_equal(get(posed.url, 0), UTTER_E_FILE);
        assert_int_equal(posed.n_asked, i ? 1 : 11);
        assert_string_equal(got.bytes, "");
        assert_null(strstr(why.text, "answers")); /* it says why */
    }
    transfer_close(&transfer);
}

/* ---- The hub ---- */

static void set(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void set_places(const char *cache, const char *home, const char *xdg, const char *user)
{
    set("HF_HUB_CACHE", cache);
    set("HF_HOME", home);
    set("XDG_CACHE_HOME", xdg);
    set("HOME", user);
}

static void the_hubs_folder_is_its_clients(void **state)
{
    (void)state;
    static const struct {
        const char *cache, *home, *xdg, *user, *folder;
    } rows[] = {
        {"c", "/h", "/x", "/u", "c"},
        {"", "/h", "/x", "/u", "/h/hub"},
        {NULL, "h", "/x", "/u", "h/hub"},
        {NULL, "", "/x", "/u", "/x/huggingface/hub"},
        {NULL, NULL, "/x", NULL, "/x/huggingface/hub"},
        {NULL, NULL, "x", "/u", "/u/.cache/huggingface/hub"},
        {NULL, NULL, "", "/u", "/u/.cache/huggingface/hub"},
        {NULL, NULL, NULL, "/u", "/u/.cache/huggingface/hub"},
        {NULL, NULL, "x", "", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_places(rows[i].cache, rows[i].home, rows[i].xdg, rows[i].user);
        const char *folder = hub_folder();
        assert_int_equal(folder != NULL, rows[i].folder != NULL);
        if (folder) {
            assert_string_equal(folder, rows[i].folder);
        }
    }
    char name[4200];
    memset(name, 'n', sizeof name);
    name[4096] = 0;
    set_places(NULL, name, NULL, NULL);
    assert_null(hub_folder());
    assert_null(hub_token());
    name[4095] = 0;
    set_places(NULL, name, NULL, NULL);
    assert_int_equal(strlen(hub_folder()), 4095 + 4);
}

static void a_token_is_a_variable_or_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *file, *token;
    } rows[] = {
        {"own", "other", "own"},
        {NULL, "abc", "abc"},
        {"", "abc\n", "abc"},
        {NULL, "abc\r\ndef", "abc"},
        {NULL, "abc def", "abc"},
        {NULL, "", NULL},
        {NULL, "\nabc", NULL},
        {NULL, "abc", "abc"},
        {NULL, NULL, NULL},
    };
    set_places("/elsewhere", support_folder(), NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set("HF_TOKEN", rows[i].variable);
        unlink(support_path("token"));
        if (rows[i].file) {
            support_write_file(support_path("token"), rows[i].file, strlen(rows[i].file));
        }
        const char *token = hub_token();
        assert_int_equal(token != NULL, rows[i].token != NULL);
        if (token) {
            assert_string_equal(token, rows[i].token);
        }
    }
}

static void the_hub_may_have_a_mirror(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{NULL, "https://huggingface.co"},
        {"", "https://huggingface.co"}, {"http://m", "http://m"}, {"http://m/a//", "http://m/a"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set("HF_ENDPOINT", rows[i][0]);
        assert_string_equal(hub_address(), rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_means),
        cmocka_unit_test(what_ends_early_may_go_on_later),
        cmocka_unit_test(who_takes_the_bytes_may_end_it),
        cmocka_unit_test(a_request_says_who_asks_and_from_where),
        cmocka_unit_test(a_redirect_is_followed_without_the_token),
        cmocka_unit_test(the_hubs_folder_is_its_clients),
        cmocka_unit_test(a_token_is_a_variable_or_a_line),
        cmocka_unit_test(the_hub_may_have_a_mirror),
    };
    return cmocka_run_group_tests_name("transfer", tests, start, server_end);
}
