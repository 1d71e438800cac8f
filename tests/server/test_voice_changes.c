/* SPDX-License-Identifier: Apache-2.0
 * Voices that come and go: who may delete or replace one, what is refused at once, what is told of a voice beside its
 * file; and which temporary folders of others a server clears away. */
#include "tests/server/posed_voices.h"

#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "server/loop/account.h"
#include "server/loop/spawn.h"
#include "store/mirror.h"

/* ---- Who may change them ---- */

static int n_done;

static void on_done(void *user, json_t *voice, const char *file, const struct refusal *r)
{
    assert_true(user == &n_done && json_is_null(voice) && !file && !r);
    n_done++;
}

static bool delete (const char *name, const struct account *account)
{
    n_done = 0;
    refusal = (struct refusal){0};
    return voices_delete(&s, name, account, on_done, &n_done, &refusal);
}

/* With the key of `account`, or without keys. */
static void put_owned(const char *file, const char *name, const struct account *account)
{
    char mark[ACCOUNT_MARK], told[100], stem[100];
    account_mark(mark, account);
    put_voice(file, name, WIDTH, NULL);
    snprintf(stem, sizeof stem, "%.*s.json", (int)(strlen(file) - strlen(VOICE_ENDING)), file);
    snprintf(told, sizeof told, "{\"owner\":\"%s\"}", mark);
    put(stem, told);
}

static void its_uploader_may_delete_it(void **state)
{
    const struct account mine = {.digest = {1}}, other = {.digest = {2}};
    (void)state;
    put_owned("1.voice", "Ann", &mine);
    put_owned("2.voice", "Bob", &mine);
    put_voice("3.voice", "Cleo", WIDTH, NULL);
    put_voice("4.voice", "Dan", WIDTH, NULL);
    begin("base");
    assert_false(delete ("nobody", &mine));
    assert_true(refusal.status == 404 && strcmp(refusal.param, "name") == 0);
    assert_string_equal(refusal.message, "no uploaded voice 'nobody'");
    const char *const others[] = {"ann", "Cleo"};
    for (int i = 0; i < 2; i++) {
        assert_false(delete (others[i], i ? &mine : &other));
        assert_true(refusal.status == 403 && strcmp(refusal.param, "name") == 0 && n_done == 0);
    }
    assert_string_equal(refusal.message, "the voice 'Cleo' was not uploaded with this key");
    assert_true(is_there("1.voice") && is_there("3.voice"));
    assert_true(delete ("ann", &mine) && n_done == 1);
    assert_false(is_there("1.voice") || is_there("1.json"));
    assert_true(delete ("Bob", NULL) && n_done == 1); /* without keys everybody may */
    assert_int_equal(unlink(path_of("3.voice")), 0);
    assert_true(delete ("Cleo", NULL) && n_done == 1); /* somebody else has removed the file */
    assert_string_equal(table(), "Dan of 4.voice, ");
    assert_true(unlink(path_of("4.voice")) == 0 && mkdir(path_of("4.voice"), 0700) == 0);
    assert_false(delete ("Dan", NULL));
    assert_true(refusal.status == 500 && n_done == 0);
    assert_non_null(strstr(refusal.message, "the file of 'Dan' cannot be removed: "));
    assert_string_equal(table(), "Dan of 4.voice, ");
    end();
}

/* What is refused before any work on a recording begins, in the order in which it is looked at. */
static void uploads_are_refused_at_once(void **state)
{
    static char long_name[102], long_text[4098];
    const struct account mine = {.digest = {1}}, other = {.digest = {2}};
    enum { SMALL = 4 };
    const struct {
        struct voices_upload upload;
        int status;
        const char *param, *message;
    } cases[] = {{{.name = long_name, .sound_bytes = SMALL}, 400, "name",
                     "\"name\" must be 1 to 100 bytes of UTF-8 that do not begin with a dot, without / "
                     "and \\"},
        {{.name = "a\x01z", .sound_bytes = SMALL}, 400, "name",
            "\"name\" must not hold characters that cannot be seen"},
        {{.name = "Eve"}, 400, "audio_sample", "the recording must be 1 byte to 10 MiB"},
        {{.name = "Eve", .sound_bytes = LIMIT_UPLOAD + 1}, 413, "audio_sample",
            "the recording must be 1 byte to 10 MiB"},
        {{.once = true}, 400, "ref_audio", "the recording must be 1 byte to 10 MiB"},
        {{.name = "Eve", .sound_bytes = LIMIT_UPLOAD, .transcript = long_text}, 400, "ref_text",
            "\"ref_text\" must be at most 4096 bytes"},
        {{.name = "ANN", .sound_bytes = SMALL, .transcript = long_text + 1}, 409, "name",
            "there is a voice 'ANN' (send overwrite=true to replace it)"},
        {{.name = "Ann", .sound_bytes = SMALL, .overwrite = true, .account = &other}, 403, "name",
            "the voice 'Ann' was not uploaded with this key"},
        {{.name = long_name + 1, .sound_bytes = SMALL}, 503, "",
            "other recordings are being worked on"},
        {{.name = "Ann", .sound_bytes = SMALL, .overwrite = true, .account = &mine}, 503, "",
            "other recordings are being worked on"},
        {{.name = "Eve", .sound_bytes = SMALL}, 409, "name",
            "the file of 'Eve' would be another voice's (choose another name)"},
        {{.name = "A{Z:09", .sound_bytes = SMALL}, 409, "name",
            "the file of 'A{Z:09' would be another voice's (choose another name)"},
        {{.name = "rene\xCC\x81", .sound_bytes = SMALL}, 409, "name", /* as people write it */
            "there is a voice 'ren\xC3\xA9' (send overwrite=true to replace it)"},
        {{.once = true, .sound_bytes = SMALL}, 503, "", "other recordings are being worked on"}};
    (void)state;
    memset(long_name, 'n', sizeof long_name - 1);
    memset(long_text, 't', sizeof long_text - 1);
    put_owned("1.voice", "Ann", &mine);
    put_voice("2.voice", "Ren\xC3\xA9", WIDTH, NULL);
    put_voice("az09-854a86a3efbf.voice", "Zac", WIDTH, NULL);
    put_voice("eve-85262adf74518bbb.voice", "Zoe", WIDTH, NULL);
    put_voice("eve-85262adf7451.voice", "Zed", WIDTH, NULL); /* where Eve's would be */
    begin("base");
    s.voices->n_uploads = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct refusal r = {0};
        assert_false(voices_create(&s, &cases[i].upload, on_done, &n_done, &r));
        if (r.status != cases[i].status || strcmp(r.param, cases[i].param) != 0 ||
            strcmp(r.message, cases[i].message) != 0) {
            fail_msg("%zu: %d %s %s", i, r.status, r.param, r.message);
        }
        assert_int_equal(r.retry_ms, r.status == 503 ? 3000 : 0);
    }
    s.voices->n_uploads = 0;
    end();
}

static void expect_no_upload(const struct voices_upload *upload, int status, const char *message)
{
    assert_false(voices_create(&s, upload, on_done, &n_done, &refusal));
    assert_int_equal(refusal.status, status);
    assert_string_equal(refusal.message, message);
}

static void some_servers_take_no_uploads(void **state)
{
    static const char busy[] = "other recordings are being worked on";
    const struct voices_upload bob = {.name = "Bob", .sound_bytes = 4},
                               ann = {.name = "Ann", .sound_bytes = 4, .overwrite = true};
    (void)state;
    put_voice("1.voice", "Ann", WIDTH, NULL);
    begin("base");
    s.voices->n_uploads = 2;
    s.voices->n = LIMIT_VOICES - 1;
    expect_no_upload(&bob, 503, busy);
    s.voices->n = LIMIT_VOICES;
    expect_no_upload(&bob, 507, "there are 1000 voices, more are not kept");
    expect_no_upload(&ann, 503, busy); /* who replaces one needs no place */
    s.voices->n = 1;
    s.voices->folder[0] = 0;
    expect_no_upload(&bob, 403, "this server keeps no voices (start it with --voices DIR)");
    s.ready.kind_name = "custom_voice";
    expect_no_upload(
        &bob, 400, "only a base model can clone a voice, the one served here is custom_voice");
    s.voices->n_uploads = 0;
    end();
}

/* ---- Words beside a voice ---- */

static void save(const char *name, const char *said, const char *told)
{
    utter_voice *voice = voice_of("Ann", WIDTH, said);
    if (told) {
        put("told", told);
    }
    assert_int_equal(
        told_save(voice, path_of(name), told ? path_of("told") : NULL, path_of("scratch"), NULL),
        UTTER_OK);
    utter_voice_free(&voice);
}

static void expect_told(const char *name, const char *json)
{
    json_t *told = told_read(path_of(name)), *want = json_loads(json, 0, NULL);
    assert_true(json_equal(told, want));
    json_decref(told);
    json_decref(want);
}

/* How many files of the folder begin so, and end with ".json". */
static int count(const char *begins)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        const char *ends = strstr(e->d_name, ".json");
        n += strncmp(e->d_name, begins, strlen(begins)) == 0 && ends && !ends[5];
    }
    closedir(d);
    return n;
}

/* Of the files beside the voice "ann" the one that goes with its bytes holds this, and nothing more. */
static void expect_own_words(const char *text)
{
    char hash[MIRROR_HASH], name[100], bytes[100];
    uint64_t n_hashed;
    assert_int_equal(mirror_hash(hash, &n_hashed, path_of("ann.voice"), NULL), UTTER_OK);
    snprintf(name, sizeof name, "ann.%.16s.json", hash);
    FILE *file = fopen(path_of(name), "r");
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(bytes, text, n);
    fclose(file);
}

static void words_belong_to_one_recording(void **state)
{
    static const char *const others[] = {"ann.json.voice", "anna.json", "an.json", "ann.012345678.json",
        "ann.0123456789abcdef0.json", "ann.0123456789abcdeg.json", "ann.0123456789abcdef.jso",
        "bob.0123456789abcdef.json"};
    (void)state;
    save("ann.voice", "first", "{\"consent\":\"1\"}");
    expect_told("ann.voice", "{\"consent\":\"1\"}");
    assert_int_equal(count("ann."), 1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put(others[i], "{\"consent\":\"other\"}");
    }
    put("ann.json", "{\"consent\":\"of before\"}");
    put("ann.0123456789abcdef.json", "{\"consent\":\"of another\"}");
    expect_told("ann.voice", "{\"consent\":\"1\"}");
    save("ann.voice", "second", "{\"consent\":\"2\"}");
    expect_told("ann.voice", "{\"consent\":\"2\"}");
    assert_false(is_there("ann.json") || is_there("ann.0123456789abcdef.json"));
    assert_int_equal(count("ann."), 4); /* its own, and three of the others */
    save("ann.voice", "second", NULL);  /* the same bytes, without a word */
    expect_told("ann.voice", "{}");
    assert_int_equal(count("ann."), 3);
    put("ann.json", "{\"consent\":\"of before\"}");
    expect_told("ann.voice", "{\"consent\":\"of before\"}"); /* as an earlier server wrote it */
    save("ann.voice", "third", NULL);
    expect_told("ann.voice", "{}");
    assert_false(is_there("ann.json"));
    expect_own_words("{}"); /* in case that the others were not removed */
    put("ann.json", "[1]"); /* is no object */
    assert_int_equal(unlink(path_of("ann.voice")), 0);
    save("ann.voice", "fourth", "[2]");
    expect_told("ann.voice", "{}");
    assert_int_equal(unlink(path_of("ann.voice")), 0);
    told_sweep(path_of("ann.voice"));
    assert_int_equal(count("ann."), 3);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_true(is_there(others[i]));
    }
    /* Where no folder is named, it is this one. */
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    put("ann.json", "{}"), put("ann.0123456789abcdef.json", "{}");
    assert_int_equal(chdir(folder), 0);
    told_sweep("ann.voice");
    assert_int_equal(chdir(here), 0);
    assert_int_equal(count("ann."), 3);
    empty(folder);
}

/* ---- Temporary folders of servers that are gone ---- */

/* As such a server leaves one; `age_s`: for so long nobody has changed it. */
static void make_left(char *path, int mode, int age_s, const char *const *names, size_t n)
{
    strcpy(path, P_tmpdir "/utter-serve-XXXXXX");
    assert_non_null(mkdtemp(path));
    for (size_t i = 0; i < n; i++) {
        char file[200];
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        FILE *f = fopen(file, "w");
        assert_true(f && fclose(f) == 0);
    }
    const time_t then = time(NULL) - age_s;
    const struct timespec times[] = {{then, 0}, {then, 0}};
    assert_int_equal(chmod(path, (mode_t)mode), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void what_a_server_left_is_cleared_away(void **state)
{
    static const char *const ours[] = {"7.sound", "12.json", "7.voice", "anna-0123456789ab.voice",
        "anna-0123456789ab.0123456789abcdef.json", "7.0123456789abcdef.json", ".utter-0a1b"},
                             *const foreign[] = {"notes", "7", "7.txt", "x7.sound", "7x.sound",
                                 "anna-0123456789a.voice", "anna-0123456789abc.voice", "anna.voice",
                                 "7.0123456789abcde.json", "7.0123456789abcdef0.json", "7.sounds",
                                 "utter-0a1b", "-.voice"};
    enum { N_OURS = sizeof ours / sizeof *ours, N_FOREIGN = sizeof foreign / sizeof *foreign };
    const char *all[N_OURS + N_FOREIGN];
    char gone[64], held[64], recent[64], open_to_all[64], mixed[64];
    (void)state;
    memcpy(all, ours, sizeof ours);
    memcpy(all + N_OURS, foreign, sizeof foreign);
    make_left(gone, 0700, 90, ours, N_OURS);
    make_left(held, 0700, 0, ours, 1);
    int lock = open(held, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0);
    const struct timespec old[] = {{1, 0}, {1, 0}};
    assert_int_equal(utimensat(AT_FDCWD, held, old, 0), 0);
    make_left(recent, 0700, 30, ours, 1);
    make_left(open_to_all, 0755, 90, ours, 1);
    make_left(mixed, 0700, 90, all, N_OURS + N_FOREIGN);
    put(".utter-0123456789abcdef", "half of a voice"); /* among those that are kept */
    assert_int_equal(utimensat(AT_FDCWD, path_of(".utter-0123456789abcdef"), old, 0), 0);
    begin("base");
    assert_false(is_there(".utter-0123456789abcdef"));
    assert_int_not_equal(access(gone, F_OK), 0);
    const char *const stay[] = {held, recent, open_to_all};
    for (int i = 0; i < 3; i++) {
        char file[200];
        snprintf(file, sizeof file, "%s/%s", stay[i], ours[0]);
        assert_int_equal(access(file, F_OK), 0);
        empty(stay[i]);
        assert_int_equal(rmdir(stay[i]), 0);
    }
    for (int i = 0; i < N_OURS + N_FOREIGN; i++) {
        char file[200];
        snprintf(file, sizeof file, "%s/%s", mixed, all[i]);
        if ((access(file, F_OK) == 0) != (i >= N_OURS)) {
            fail_msg("%s", all[i]);
        }
    }
    empty(mixed);
    assert_int_equal(rmdir(mixed), 0);
    close(lock);
    /* Its own is held, as long as it lives. */
    int again = open(s.voices->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(again >= 0 && flock(again, LOCK_EX | LOCK_NB) != 0);
    close(again);
    end();
}

/* ---- The process that makes one ---- */

static const char model[] = "build/checkpoints/tiny06-base";

/* How it ends when its parent has said so many bytes; *said: what it said of it. */
static int make(const char *model_path, const char *base, const char *out, const char *heard,
    size_t n_heard, char said[200])
{
    int to[2], from[2], status;
    assert_true(pipe(to) == 0 && pipe(from) == 0);
    assert_int_equal(write(to[1], heard, n_heard), n_heard);
    close(to[1]);
    char *arguments[] = {strdup(model_path), strdup(base), strdup(out), strdup("open")};
    const pid_t child = fork();
    if (child == 0) {
        dup2(from[1], STDERR_FILENO);
        dup2(to[0], SPAWN_SOCKET);
        _exit(voices_child(arguments));
    }
    close(to[0]), close(from[1]);
    ssize_t n = 0;
    for (ssize_t more; (more = read(from[0], said + n, (size_t)(199 - n))) > 0; n += more) {
    }
    said[n] = 0;
    close(from[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    for (int i = 0; i < 4; i++) {
        free(arguments[i]);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Only who sent the recording is to blame for it, and nobody learns where what is. */
static void a_recording_becomes_a_voice(void **state)
{
    enum { HEARD = sizeof "Ann" + 1 };
    static const char heard[HEARD] = "Ann";
    static const size_t too_little[] = {0, 3, 4};
    char base[300], said[200];
    (void)state;
    snprintf(base, sizeof base, "%s", path_of("1"));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(make(model, base, path_of("ann.voice"), heard, too_little[i], said), 2);
        assert_string_equal(said, "");
    }
    assert_int_equal(make(path_of("none"), base, path_of("ann.voice"), heard, HEARD, said), 2);
    assert_string_equal(said, "there is no such folder (check the name)\n");
    assert_int_equal(make(model, base, path_of("ann.voice"), heard, HEARD, said), 1);
    assert_string_equal(said, "cannot open: No such file or directory (check the name)\n");
    put_sound("1.sound");
    assert_int_equal(make(model, base, path_of("none/ann.voice"), heard, HEARD, said), 2);
    assert_string_equal(said, "cannot create: No such file or directory (check the name)\n");
    assert_int_equal(mkdir(path_of("1.json"), 0700), 0); /* of a file beside it, and in it */
    assert_int_equal(make(model, base, path_of("ann.voice"), heard, HEARD, said), 2);
    assert_string_equal(said, "cannot read: Is a directory\n");
    assert_int_equal(make(path_of("1.json"), base, path_of("ann.voice"), heard, HEARD, said), 2);
    assert_string_equal(said, "no config.json (not a Qwen3-TTS model folder)\n");
    put("1.json/config.json", "{");
    assert_int_equal(make(path_of("1.json"), base, path_of("ann.voice"), heard, HEARD, said), 2);
    assert_memory_equal(said, "/config.json: not usable JSON", 29);
    assert_int_equal(unlink(path_of("1.json/config.json")), 0);
    assert_int_equal(rmdir(path_of("1.json")), 0);
    static const char *const made[] = {"ann.voice", "1.voice"};
    for (int i = 0; i < 2; i++) { /* that is kept, and for one request */
        utter_voice *voice;
        utter_voice_info info = {.size = sizeof info};
        assert_int_equal(make(model, base, path_of(made[i]), heard, HEARD, said), 0);
        assert_string_equal(said, "");
        assert_int_equal(utter_voice_load(&voice, path_of(made[i]), NULL), UTTER_OK);
        assert_int_equal(utter_voice_get_info(voice, &info), UTTER_OK);
        assert_string_equal(info.name, "Ann");
        utter_voice_free(&voice);
    }
    empty(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_uploader_may_delete_it),
        cmocka_unit_test(uploads_are_refused_at_once),
        cmocka_unit_test(some_servers_take_no_uploads),
        cmocka_unit_test(words_belong_to_one_recording),
        cmocka_unit_test(what_a_server_left_is_cleared_away),
        cmocka_unit_test(a_recording_becomes_a_voice),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
