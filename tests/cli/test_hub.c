/* SPDX-License-Identifier: Apache-2.0
 * A repository from a hub that a thread poses: what is asked for, what stands in the cache then, what of it goes on
 * where an earlier run ended, and what is refused. Waits take no time, and the room of the disk is posed. */
#include "tests/cli/posed_hub.h"

/* ---- What is pulled ---- */

static void a_repository_is_pulled_once(void **state)
{
    (void)state;
    mode_t mask = umask(0);
    assert_int_equal(pull(), UTTER_OK);
    umask(mask);
    assert_whole();
    assert_true(told.all == ALL_BYTES && told.done <= ALL_BYTES);
    assert_string_equal(told.file, "merges.txt");
    /* For everybody to read, as far as the user lets them. */
    static const char *const folders[] = {
        "blobs", "refs", "snapshots/" COMMIT "/speech_tokenizer/deep"};
    struct stat about;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        assert_int_equal(stat(of_cache(folders[i]), &about), 0);
        assert_int_equal(about.st_mode & 07777, 0755);
    }
    assert_int_equal(stat(of_blob(MODEL, ""), &about), 0);
    assert_int_equal(about.st_mode & 07777, 0644);
    assert_int_equal(hub.n_asked, 2 + N_FILES);
    assert_int_equal(seconds_slept, 0);
    /* The second time the lists alone are asked for. */
    assert_int_equal(pull(), UTTER_OK);
    assert_whole();
    assert_int_equal(hub.n_asked, 2);
    assert_string_equal(hub.asked[0], "/api/models/me/mine/revision/main");
    assert_string_equal(hub.asked[1], "/api/models/me/mine/tree/" COMMIT "?recursive=true");
}

static void what_is_half_there_goes_on(void **state)
{
    (void)state;
    static const struct {
        const char *ending;
        const char *data;
        size_t bytes;
        const char *range; /* that is asked for; NULL: nothing of this file */
        int n_asked;
    } rows[] = {
        {".incomplete", WEIGHTS, 1, " 1-", 6},
        {".incomplete", WEIGHTS, 43, " 43-", 6},
        {".incomplete", WEIGHTS, 44, NULL, 5},
        {".incomplete", WEIGHTS "!", 45, "", 6}, /* of another file: from the start */
        {".incomplete", WEIGHTS WEIGHTS, 88, "", 6},
        {".incomplete", "", 0, "", 6},
        {"", WEIGHTS, 44, NULL, 5},
        {"", WEIGHTS, 43, "", 6},
        {"", WEIGHTS "!", 45, "", 6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[256] = "/api";
        begin(NULL);
        leave(MODEL, rows[i].ending, rows[i].data, rows[i].bytes);
        assert_int_equal(pull(), UTTER_OK);
        assert_whole();
        assert_int_equal(told.done, ALL_BYTES);
        assert_int_equal(hub.n_asked, rows[i].n_asked);
        if (rows[i].range) {
            snprintf(wanted, sizeof wanted, "/me/mine/resolve/" COMMIT "/model.safetensors%s",
                rows[i].range);
            assert_string_equal(hub.asked[3], wanted);
        }
    }
}

static void a_server_may_begin_anew(void **state)
{
    (void)state;
    leave(MODEL, ".incomplete", WEIGHTS, 20);
    hub.from_the_start = true;
    assert_int_equal(pull(), UTTER_OK);
    assert_whole();
    assert_true(told.all == ALL_BYTES && told.done <= ALL_BYTES);
    assert_int_equal(hub.n_asked, 6);
}

static void what_ends_early_is_asked_for_again(void **state)
{
    (void)state;
    hub.cut = 10; /* of 44: 10, 10, 10, 10, 4 */
    assert_int_equal(pull(), UTTER_OK);
    assert_whole();
    assert_int_equal(hub.n_asked, 2 + N_FILES + 4);
    assert_string_equal(hub.asked[4], "/me/mine/resolve/" COMMIT "/model.safetensors 10-");
    assert_string_equal(hub.asked[7], "/me/mine/resolve/" COMMIT "/model.safetensors 40-");
}

static void a_hub_that_is_busy_is_asked_again(void **state)
{
    (void)state;
    char text[256];
    hub.n_busy = 4;
    assert_int_equal(pull(), UTTER_OK);
    assert_whole();
    assert_int_equal(hub.n_asked, 4 + 2 + N_FILES);
    assert_int_equal(seconds_slept, 4);
    begin(NULL);
    hub.n_busy = 5;
    snprintf(text, sizeof text,
        "http://127.0.0.1:%d/api/models/me/mine/revision/main: the server answers 503 (later it may be "
        "better)",
        server.port);
    assert_refused(UTTER_E_DEVICE, text);
    assert_int_equal(hub.n_asked, 5);
    assert_int_equal(seconds_slept, 4);
}

/* ---- What is refused ---- */

static void a_list_that_is_none_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *revision, *list, *why;
    } rows[] = {
        {"{}", NULL, "me/mine: the hub names no revision"},
        {"{\"sha\":\"c0ffee\"}", NULL, "me/mine: the hub names no revision"},
        {"{\"sha\":\"C0FFEE0000000000000000000000000000000000\"}", NULL,
            "me/mine: the hub names no revision"},
        {"{\"sha\":\"" COMMIT "0\"}", NULL, "me/mine: the hub names no revision"},
        {NULL, "[]", "me/mine: has no files of a model"},
        {NULL, "{}", "me/mine: has no files of a model"},
        {NULL, "[{\"type\":\"file\",\"path\":\"a.json\",\"size\":1}]",
            "me/mine: the hub's list has no size or hash for a.json"},
        {NULL, "[{\"type\":\"file\",\"path\":\"a.json\",\"size\":-1,\"oid\":\"" COMMIT "\"}]",
            "me/mine: the hub's list has no size or hash for a.json"},
        {NULL,
            "[{\"type\":\"file\",\"path\":\"a.json\",\"size\":1,\"oid\":\"" COMMIT
            "\",\"lfs\":{\"size\":1,\"oid\":\"" COMMIT "\"}}]",
            "me/mine: the hub's list has no size or hash for a.json"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hub.revision = rows[i].revision;
        hub.list = rows[i].list;
        hub.list_bytes = rows[i].list ? strlen(rows[i].list) : 0;
        assert_refused(UTTER_E_FILE, rows[i].why);
        assert_int_equal(hub.n_asked, rows[i].revision ? 1 : 2);
    }
    char text[256];
    hub.revision = "[";
    snprintf(text, sizeof text,
        "http://127.0.0.1:%d/api/models/me/mine/revision/main: the answer is no JSON", server.port);
    assert_refused(UTTER_E_FILE, text);
    hub.revision = "";
    assert_refused(UTTER_E_FILE, text);
}

static void a_list_has_a_bound(void **state)
{
    (void)state;
    enum { MOST = 4 << 20 };
    static char list[MOST + 2];
    memset(list, ' ', sizeof list);
    memcpy(list, "[]", 2);
    hub.list = list;
    hub.list_bytes = MOST;
    assert_refused(UTTER_E_FILE, "me/mine: has no files of a model");
    hub.list_bytes = MOST + 1;
    assert_refused(UTTER_E_FILE, "the list of files is too long");
    /* 256 empty files, and one more. */
    for (int n = 256; n <= 257; n++) {
        size_t length = 0;
        for (int i = 0; i < n; i++) {
            length += (size_t)snprintf(list + length, sizeof list - length,
                "%c{\"type\":\"file\",\"path\":\"%d.json\",\"size\":0,\"oid\":"
                "\"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\"}",
                i ? ',' : '[', i);
        }
        list[length] = ']';
        hub.list_bytes = length + 1;
        if (n == 256) {
            assert_int_equal(pull(), UTTER_OK);
            begin(NULL);
            hub.list = list;
        }
    }
    assert_refused(UTTER_E_FILE, "me/mine: the hub's list has no size or hash for 256.json");
}

static void a_name_may_hold_any_sign(void **state)
{
    (void)state;
    static const char list[] = "[{\"type\":\"file\",\"path\":\"100%d %s.json\",\"size\":0,\"oid\":"
                               "\"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\"}]";
    hub.list = list;
    hub.list_bytes = sizeof list - 1;
    assert_int_equal(pull(), UTTER_OK);
    support_assert_content(of_cache("snapshots/" COMMIT "/100%d %s.json"), "");
}

static void what_is_not_as_promised_is_refused(void **state)
{
    (void)state;
    hub.sends = "weights, weights, weights, and weights agaim";
    assert_refused(UTTER_E_FILE, "model.safetensors: what came is not what the hub's list says: its "
                                 "hash is wrong (it was removed; run it again)");
    assert_int_not_equal(access(of_blob(MODEL, ".incomplete"), F_OK), 0);
    assert_int_not_equal(access(of_blob(MODEL, ""), F_OK), 0);
    hub.sends = WEIGHTS "!";
    assert_refused(UTTER_E_FILE, "model.safetensors: the server sends more than the hub's list says");
    hub.sends = NULL;
    assert_int_equal(pull(), UTTER_OK);
    assert_whole();
}

static void what_never_comes_is_given_up(void **state)
{
    (void)state;
    char text[256];
    hub.sends = "weights"; /* whole, as the server has it */
    snprintf(text, sizeof text,
        "http://127.0.0.1:%d/me/mine/resolve/" COMMIT
        "/model.safetensors: the server ends it early, again and again",
        server.port);
    assert_refused(UTTER_E_DEVICE, text);
    assert_int_equal(hub.n_asked, 3 + 6);
    assert_int_equal(seconds_slept, 4);
    support_assert_content(of_blob(MODEL, ".incomplete"), "weights"); /* for the next time */
}

static void who_is_told_may_stop_it(void **state)
{
    (void)state;
    told.stops_at = "the list";
    assert_refused(UTTER_E_CANCELLED, "interrupted");
    assert_string_equal(told.file, "the list");
    /* Also while what is there already is read. */
    told.stops_at = NULL;
    assert_int_equal(pull(), UTTER_OK);
    unlink(of_cache("refs/main"));
    assert_int_equal(rename(of_blob(MODEL, ""), of_blob(MODEL, ".incomplete")), 0);
    told.stops_at = "model.safetensors";
    assert_refused(UTTER_E_CANCELLED, "interrupted");
    assert_int_equal(told.done, 2 + 44);
    assert_int_equal(hub.n_asked, 2);
}

static void two_do_not_write_one_file(void **state)
{
    (void)state;
    leave(MODEL, ".incomplete", WEIGHTS, 20);
    int other = open(of_blob(MODEL, ".incomplete"), O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_EX), 0);
    assert_refused(UTTER_E_FILE, "model.safetensors: another program downloads it now");
    close(other);
    assert_int_equal(pull(), UTTER_OK);
    assert_whole();
}

static void what_has_no_room_is_not_begun(void **state)
{
    (void)state;
    char text[PATH_MAX + 256];
    static const struct {
        const char *ending;
        size_t bytes;
        unsigned long blocks; /* of two bytes, that are enough */
    } rows[] = {
        {NULL, 0, 31},           /* 61 bytes */
        {"", 44, 9},             /* 17 */
        {".incomplete", 20, 21}, /* 41 */
        {".incomplete", 45, 31}, /* which is dropped */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin(NULL);
        if (rows[i].ending) {
            leave(MODEL, rows[i].ending, WEIGHTS "!", rows[i].bytes);
        }
        blocks_free = rows[i].blocks - 1;
        snprintf(text, sizeof text,
            "%s: 0.0 MB are to come and 0.0 MB are free (HF_HUB_CACHE names another folder)",
            support_path("cache/models--me--mine"));
        assert_refused(UTTER_E_IO, text);
        assert_int_equal(hub.n_asked, 2);
        blocks_free = rows[i].blocks;
        assert_int_equal(pull(), UTTER_OK);
        assert_whole();
    }
}

static void a_cache_that_cannot_be_is_told(void **state)
{
    (void)state;
    char cache[PATH_MAX + 16], text[PATH_MAX + 64];
    support_write_file(support_path("cache"), "", 0);
    snprintf(text, sizeof text, "%s: cannot make the folder: Not a directory (check the name)",
        support_path("cache/models--me--mine"));
    assert_refused(UTTER_E_FILE, text);
    /* 3,584 bytes are left for names within it. */
    memset(cache, 'c', sizeof cache);
    cache[4096 - 512 - (sizeof "/models--me--mine" - 1)] = 0;
    assert_int_equal(
        hub_pull("me/mine", cache, progress, &told, &pulled_bytes, &why), UTTER_E_ARGUMENT);
    snprintf(text, sizeof text, "%s: the path is too long", cache);
    assert_int_equal(strncmp(why.text, text, 100), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_repository_is_pulled_once, begin),
        cmocka_unit_test_setup(what_is_half_there_goes_on, begin),
        cmocka_unit_test_setup(a_server_may_begin_anew, begin),
        cmocka_unit_test_setup(what_ends_early_is_asked_for_again, begin),
        cmocka_unit_test_setup(a_hub_that_is_busy_is_asked_again, begin),
        cmocka_unit_test_setup(a_list_that_is_none_is_refused, begin),
        cmocka_unit_test_setup(a_list_has_a_bound, begin),
        cmocka_unit_test_setup(a_name_may_hold_any_sign, begin),
        cmocka_unit_test_setup(what_is_not_as_promised_is_refused, begin),
        cmocka_unit_test_setup(what_never_comes_is_given_up, begin),
        cmocka_unit_test_setup(who_is_told_may_stop_it, begin),
        cmocka_unit_test_setup(two_do_not_write_one_file, begin),
        cmocka_unit_test_setup(what_has_no_room_is_not_begun, begin),
        cmocka_unit_test_setup(a_cache_that_cannot_be_is_told, begin),
    };
    return cmocka_run_group_tests_name("hub", tests, start_hub, server_end);
}
