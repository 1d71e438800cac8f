/* SPDX-License-Identifier: Apache-2.0
 * A voice that comes as a form, as browsers and curl send it: what each field does, and what is refused. */
#include "tests/server/posed_front.h"

enum { LONG_S = 20, MOST_TEXT = 4096 };

struct form_field {
    const char *name, *value;
    size_t n; /* of its bytes; 0: a text */
};

static char form[20000], told[20000];
static size_t n_form;

static void put(const void *bytes, size_t n)
{
    assert_true(n_form + n <= sizeof form);
    memcpy(form + n_form, bytes, n);
    n_form += n;
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

/* What is answered to a request with the form as its body. */
static const char *answer_to(const char *method, const char *path)
{
    static const struct sockaddr from = {.sa_family = AF_UNIX};
    char head[300];
    int pair[2];
    size_t n = 0;
    snprintf(head, sizeof head,
        "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: multipart/form-data; boundary=B\r\nContent-Length: %zu\r\n\r\n",
        method, path, n_form);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_non_null(conn_new(&posed, &route_service, pair[0], &from));
    assert_int_equal(send(pair[1], head, strlen(head), 0), strlen(head));
    assert_int_equal(send(pair[1], form, n_form, 0), n_form);
    ssize_t got = -1;
    for (double until = clock_seconds() + LONG_S; got != 0 && clock_seconds() < until;) {
        posed_turn();
        got = recv(pair[1], told + n, sizeof told - 1 - n, 0);
        n += got > 0 ? (size_t)got : 0;
    }
    told[n] = 0;
    close(pair[1]);
    return told;
}

/* To a form of these fields, up to one without a name. */
static const char *answer_to_form(const struct form_field *fields)
{
    n_form = 0;
    for (const struct form_field *f = fields; f->name; f++) {
        put_text("--B\r\nContent-Disposition: form-data; name=\"");
        put_text(f->name);
        put_text("\"\r\n\r\n");
        put(f->value, f->n ? f->n : strlen(f->value));
        put_text("\r\n");
    }
    put_text("--B--\r\n");
    return answer_to("POST", "/v1/audio/voices");
}

static char text[MOST_TEXT + 2]; /* of letters */

static const struct {
    struct form_field fields[7];
    const char *status, *words;
} rows[] = {
    {{{"name", "Ann", 0}, {"ref_text", "hello", 0}, {"speaker_description", "low", 0},
         {"consent", "yes, she says", 0}, {"overwrite", "true", 0}, {"audio_sample", "good", 0}},
        "200", "\"speaker_description\":\"low\",\"consent\":\"yes, she says\",\"success\":true"},
    {{{"name", "Ann", 0}, {"audio_sample", "good", 0}}, "409",
        "there is a voice 'Ann' (send overwrite=true to replace it)"},
    {{{"name", "Ann", 0}, {"overwrite", "no", 0}, {"audio_sample", "good", 0}}, "409",
        "there is a voice"},
    {{{"name", "Ann", 0}, {"overwrite", "", 0}, {"audio_sample", "good", 0}}, "409",
        "there is a voice"},
    {{{"name", "Ann", 0}, {"overwrite", "1", 0}, {"audio_sample", "good", 0}}, "200",
        "\"ref_text\":null,\"success\":true"},
    {{{"name", "Ann", 0}, {"overwrite", "Yes", 0}, {"consent", "", 0}, {"audio_sample", "good", 0}},
        "200", "\"ref_text\":null,\"success\":true"},
    {{{"name", "Ann", 0}, {"overwrite", "TRUE", 0}, {"consent", text, MOST_TEXT},
         {"audio_sample", "good", 0}},
        "200", "\"consent\":\"aaa"},
    {{{"name", "Ann", 0}, {"overwrite", "true", 0}, {"consent", text, MOST_TEXT + 1},
         {"audio_sample", "good", 0}},
        "400",
        "\"\\\"consent\\\" must be at most 4096 "
        "bytes\",\"type\":\"invalid_request_error\",\"param\":"
        "\"consent\""},
    {{{"name", "Ann", 0}, {"ref_text", "a\377", 0}, {"audio_sample", "good", 0}}, "400",
        "\"\\\"ref_text\\\" must be UTF-8 without a "
        "NUL\",\"type\":\"invalid_request_error\",\"param\":"
        "\"ref_text\""},
    {{{"name", "Ann", 0}, {"speaker_description", "a\0b", 3}, {"audio_sample", "good", 0}}, "400",
        "\"\\\"speaker_description\\\" must be UTF-8 without a NUL\""},
    {{{"name", "Ann", 0}, {"overwrite", "true", 0}}, "400",
        "\"\\\"audio_sample\\\" is missing\",\"type\":\"invalid_request_error\",\"param\":\"audio_"
        "sample\""},
    {{{"name", "Ann", 0}, {"overwrite", "true", 0}, {"audio_sample", "bad", 0}}, "400",
        "bad is no sound"},
    {{{"audio_sample", "good", 0}}, "400", "\"param\":\"name\""},
    {{{"name", "", 0}, {"audio_sample", "good", 0}}, "400", "\"param\":\"name\""},
    {{{NULL, NULL, 0}}, "400", "\"param\":"},
};

static void fields_of_a_form_make_a_voice(void **state)
{
    char folder[] = P_tmpdir "/utter-form-XXXXXX";
    (void)state;
    memset(text, 'a', MOST_TEXT + 1);
    posed_voices = mkdtemp(folder);
    posed_begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *answer = answer_to_form(rows[i].fields);
        if (strncmp(answer + strlen("HTTP/1.1 "), rows[i].status, 3) != 0 ||
            !strstr(answer, rows[i].words)) {
            fail_msg("row %zu: %.1000s", i, answer);
        }
    }
    n_form = 0;
    assert_non_null(strstr(answer_to("DELETE", "/v1/audio/voices/Ann"), " 200 OK"));
    posed_end();
    assert_int_equal(rmdir(folder), 0);
    posed_voices = NULL;
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), posed_answer_all);
    }
    if (n == 6 && strcmp(arguments[1], "serve-clone") == 0) {
        return posed_clone(arguments + 2);
    }
    if (n > 1) {
        return 2;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(fields_of_a_form_make_a_voice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
