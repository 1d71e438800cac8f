/* SPDX-License-Identifier: Apache-2.0
 * A recording on its way to a voice: what the process that makes it is told, how each of its ends is told on, what is
 * left of it then, and what that process gives up. It is this program once more, which does what the recording says. */
#include "tests/server/happened.h"
#include "tests/server/posed_voices.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "server/loop/account.h"
#include "server/loop/spawn.h"

/* ---- The process ---- */

/* "good": there is a voice; "bad", "odd": there is none, and that is the recording's fault or not; "mute": it does not
 * say why; "dies", "waits"; "tell": it says what it was told. */
static int clone(char **arguments)
{
    char heard[5000], path[4096], told[4096], made[4096], recording[20] = "";
    const ssize_t n = read(SPAWN_SOCKET, heard, sizeof heard - 1);
    snprintf(path, sizeof path, "%s.sound", arguments[1]);
    snprintf(told, sizeof told, "%s.json", arguments[1]);
    snprintf(made, sizeof made, "%s" VOICE_ENDING, arguments[1]);
    FILE *file = fopen(path, "r");
    if (n < 2 || !file || fread(recording, 1, sizeof recording - 1, file) == 0 || fclose(file) != 0) {
        return 2;
    }
    if (strcmp(recording, "waits") == 0) {
        pause();
    } else if (strcmp(recording, "dies") == 0) {
        raise(SIGKILL);
    } else if (strcmp(recording, "mute") == 0) {
        return 1;
    } else if (strcmp(recording, "tell") == 0) {
        fprintf(stderr, "%s|%s|%s|%s|%s|%s|%d\n", arguments[0], arguments[1], arguments[2],
            arguments[3], heard, heard + strlen(heard) + 1, (int)n);
        return 2;
    } else if (strcmp(recording, "good") != 0) {
        fprintf(stderr, "%s it is\nand more\n", recording);
        return strcmp(recording, "bad") == 0 ? 1 : 2;
    }
    utter_voice *voice = voice_of(heard, WIDTH, NULL);
    const utter_status status =
        strcmp(made, arguments[2]) == 0
            ? utter_voice_save(voice, made, NULL)
            : told_save(voice, arguments[2], access(told, F_OK) == 0 ? told : NULL, made, NULL);
    utter_voice_free(&voice);
    return status != UTTER_OK;
}

/* ---- The server ---- */

static void on_done(void *user, json_t *voice, const char *file, const struct refusal *r)
{
    assert_ptr_equal(user, happened);
    if (r) {
        assert_true(!voice && !file);
        note("%d '%s' %s|", r->status, r->param, r->message);
    } else {
        json_object_del(voice, "created_at");
        char *text = json_dumps(voice, JSON_COMPACT | JSON_ENCODE_ANY);
        note("%s of %s|", text, file);
        free(text);
    }
    json_decref(voice);
}

static bool start(const char *recording, const struct voices_upload *how)
{
    struct voices_upload upload = *how;
    upload.sound = recording;
    upload.sound_bytes = strlen(recording);
    refusal = (struct refusal){.status = 0};
    return voices_create(&s, &upload, on_done, happened, &refusal);
}

/* The next process that ends. */
static void reap(void)
{
    int status;
    const pid_t pid = waitpid(-1, &status, 0);
    assert_true(pid > 0);
    voices_reap(&s, pid + 1, status); /* another one's */
    voices_reap(&s, pid, status);
}

static int n_files(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        n += e->d_name[0] != '.';
    }
    closedir(d);
    return n;
}

/* How many files are on their way. */
static int n_made(void)
{
    return n_files(s.voices->temporary);
}

static char expected[9000];
#define EXPECT_LIKE(...)                                                                               \
    do {                                                                                               \
        snprintf(expected, sizeof expected, __VA_ARGS__);                                              \
        EXPECT(expected);                                                                              \
    } while (0)

static void expect_end(const char *recording, const struct voices_upload *how)
{
    assert_true(start(recording, how));
    assert_int_equal(s.voices->n_uploads, 1);
    reap();
    assert_true(s.voices->n_uploads == 0 && n_made() == 0);
}

static void it_is_told_what_it_needs(void **state)
{
    const struct voices_upload ann = {.name = "Ann", .transcript = "said so"},
                               once = {.name = "Ann", .once = true}, dot = {.name = ":)"};
    const char *real;
    (void)state;
    begin("base");
    options.model = "MODEL";
    real = s.voices->folder;
    for (int open = 0; open < 2; open++) {
        options.no_cage = open;
        expect_end("tell", &ann); /* its file is named for letters of the name, and its hash */
        char *line = strstr(happened, "/ann-");
        assert_true(line && strspn(line + 5, "0123456789abcdef") == 12);
        memset(line + 5, '0', 12);
        char *number = strstr(happened, s.voices->temporary) + strlen(s.voices->temporary) + 1;
        const unsigned long first = strtoul(number, NULL, 10);
        EXPECT_LIKE("500 '' the voice cannot be made: "
                    "MODEL|%s/%lu|%s/ann-000000000000.voice|%s|Ann|said so|12|",
            s.voices->temporary, first, real, open ? "open" : "caged");
        expect_end("tell", &once);
        EXPECT_LIKE("500 '' the voice cannot be made: MODEL|%s/%lu|%s/%lu.voice|%s|once||6|",
            s.voices->temporary, first + 1, s.voices->temporary, first + 1, open ? "open" : "caged");
        expect_end("tell", &dot);
        assert_non_null(strstr(happened, "/voice-")); /* none of its letters can stand there */
        happened[0] = 0;
    }
    end();
}

static void each_end_is_told_on(void **state)
{
    static const struct {
        const char *recording, *kept, *once;
    } cases[] = {{"bad", "400 'audio_sample' the recording: bad it is|",
                     "400 'ref_audio' the recording: bad it is|"},
        {"mute", "400 'audio_sample' the recording: it could not be worked on|",
            "400 'ref_audio' the recording: it could not be worked on|"},
        {"dies", "400 'audio_sample' the recording: it could not be worked on|",
            "400 'ref_audio' the recording: it could not be worked on|"},
        {"odd", "500 '' the voice cannot be made: odd it is|",
            "500 '' the voice cannot be made: odd it is|"}};
    const struct voices_upload ann = {.name = "Ann", .consent = "yes"}, once = {.once = true};
    (void)state;
    begin("base");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_end(cases[i].recording, &ann);
        EXPECT(cases[i].kept);
        expect_end(cases[i].recording, &once);
        EXPECT(cases[i].once);
        assert_string_equal(table(), "");
    }
    end();
}

static void a_voice_that_is_made_is_kept(void **state)
{
    const struct account mine = {.digest = {1}};
    const struct voices_upload ann = {.name = "Ann",
                                   .transcript = "said",
                                   .consent = "yes",
                                   .description = "low",
                                   .account = &mine},
                               once = {.once = true, .consent = "yes", .account = &mine},
                               again = {.name = "ANN", .overwrite = true};
    char owner[ACCOUNT_MARK];
    (void)state;
    put_voice("old.voice", "ann", WIDTH, NULL); /* made elsewhere, by another name of a file */
    put("old.json", "{\"consent\":\"no\"}");
    begin("base");
    s.voices->n = LIMIT_VOICES;
    assert_true(start("bad", &once)); /* needs no place */
    reap();
    s.voices->n = 1;
    happened[0] = 0;
    assert_false(start("good", &ann));
    assert_string_equal(refusal.message, "there is a voice 'Ann' (send overwrite=true to replace it)");
    expect_end("good", &again);
    assert_true(!is_there("old.voice") && !is_there("old.json"));
    char *file = strstr(happened, "/ann-");
    assert_non_null(file);
    char name[40];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(file + 1, "|"), file + 1);
    EXPECT_LIKE("{\"object\":\"audio.voice\",\"id\":\"ANN\",\"name\":\"ANN\",\"kind\":\"vector\","
                "\"ref_text\":null} of %s/%s|",
        s.voices->folder, name);
    assert_true(is_there(name) && s.voices->n == 1);
    voices_remove(&s, TAILQ_FIRST(&s.voices->entries));
    expect_end("good", &ann); /* the same file: names differ in no more than their case */
    EXPECT_LIKE("{\"object\":\"audio.voice\",\"id\":\"Ann\",\"name\":\"Ann\",\"kind\":\"vector\","
                "\"ref_text\":null,\"speaker_description\":\"low\",\"consent\":\"yes\"} of %s/%s|",
        s.voices->folder, name);
    account_mark(owner, &mine);
    assert_string_equal(
        json_string_value(json_object_get(TAILQ_FIRST(&s.voices->entries)->told, "owner")), owner);
    /* For one request: who asked has it, and it is nobody's. */
    assert_true(start("good", &once));
    reap();
    char *made = strstr(happened, "null of ");
    assert_non_null(made);
    made[strlen(made) - 1] = 0;
    assert_int_equal(strncmp(made + 8, s.voices->temporary, strlen(s.voices->temporary)), 0);
    json_t *told = told_read(made + 8);
    assert_int_equal(json_object_size(told), 0);
    json_decref(told);
    assert_true(n_made() == 1 && unlink(made + 8) == 0 && s.voices->n == 1);
    happened[0] = 0;
    end();
}

static void who_asked_may_be_gone(void **state)
{
    const struct voices_upload ann = {.name = "Ann"}, once = {.once = true};
    (void)state;
    begin("base");
    for (int i = 0; i < 3; i++) { /* kept all the same; not, for one request; and none */
        assert_true(start(i < 2 ? "good" : "bad", i == 1 ? &once : &ann) || i == 2);
        if (i == 2) {
            assert_true(start("bad", &once));
        }
        voices_abandon(&s, &s); /* another one */
        voices_abandon(&s, happened);
        reap();
        EXPECT("");
        assert_true(n_made() == 0 && s.voices->n == 1);
    }
    end();
}

static void so_many_are_worked_on_at_once(void **state)
{
    const struct voices_upload ann = {.name = "Ann"}, ann_too = {.name = "ANN"}, once = {.once = true};
    char temporary[300];
    int status;
    (void)state;
    begin("base");
    put("anna.json", "{}");
    assert_true(start("waits", &ann));
    assert_false(start("good", &ann_too));
    assert_true(refusal.status == 409 && strcmp(refusal.param, "name") == 0);
    assert_string_equal(refusal.message, "a voice 'ANN' is being made (ask again when it is there)");
    assert_true(start("waits", &once));
    assert_false(start("good", &once));
    assert_string_equal(refusal.message, "other recordings are being worked on");
    assert_int_equal(s.voices->n_uploads, 2);
    /* They end with the server, and nothing of them stays. */
    snprintf(temporary, sizeof temporary, "%s", s.voices->temporary);
    voices_close(&s);
    assert_true(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
    assert_int_not_equal(access(temporary, F_OK), 0);
    EXPECT("");
    assert_true(is_there("anna.json"));
    empty(folder);
}

/* A voice for one request that is there as the server ends, before anybody was told of it, goes; one to keep stays. */
static void what_was_made_last_stays_or_goes(void **state)
{
    const struct voices_upload ann = {.name = "Ann"}, once = {.once = true};
    char temporary[300];
    siginfo_t ended;
    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        begin("base");
        snprintf(temporary, sizeof temporary, "%s", s.voices->temporary);
        const int before = n_files(folder);
        assert_true(start("good", kept ? &ann : &once));
        assert_int_equal(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
        voices_close(&s);
        assert_int_equal(n_files(folder), before + kept);
        assert_int_not_equal(access(temporary, F_OK), 0);
        EXPECT("");
        empty(folder);
    }
}

static void what_cannot_be_written_is_told(void **state)
{
    const struct voices_upload ann = {.name = "Ann", .consent = "yes"};
    char path[400];
    (void)state;
    begin("base");
    expect_end("tell", &ann);
    const unsigned long last =
        strtoul(strstr(happened, s.voices->temporary) + strlen(s.voices->temporary) + 1, NULL, 10);
    happened[0] = 0;
    static const char *const endings[] = {"sound", "json"};
    for (unsigned long i = 0; i < 2; i++) { /* there is such a file */
        snprintf(path, sizeof path, "%s/%lu.%s", s.voices->temporary, last + 1 + i, endings[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_false(start("good", &ann));
        assert_true(refusal.status == 500 && refusal.param[0] == 0);
        snprintf(expected, sizeof expected, "the recording cannot be worked on: %s", strerror(EEXIST));
        assert_string_equal(refusal.message, expected);
        assert_int_equal(rmdir(path), 0);
        assert_true(s.voices->n_uploads == 0 && n_made() == 0);
    }
    end();
}

static void some_names_are_not_taken(void **state)
{
    static const char *const bad[] = {NULL, "", ".ann", "a/b", "a\\b", "a\xFF"};
    static const char why[] =
        "\"name\" must be 1 to 100 bytes of UTF-8 that do not begin with a dot, without / and \\";
    (void)state;
    begin("base");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct voices_upload upload = {.name = bad[i]};
        assert_false(start("good", &upload));
        assert_true(refusal.status == 400 && strcmp(refusal.param, "name") == 0);
        assert_string_equal(refusal.message, why);
    }
    const struct voices_upload alias = {.name = "Alloy"};
    assert_false(start("good", &alias));
    assert_true(refusal.status == 409 && strcmp(refusal.param, "name") == 0);
    assert_string_equal(
        refusal.message, "'Alloy' is a name of OpenAI's, which stands for a voice already");
    assert_int_equal(s.voices->n_uploads, 0);
    end();
}

/* ---- What the process gives up ---- */

/* What it has set, as it says itself. */
static struct given_up {
    unsigned alarm_s;
    int nice, signal_of_parent, no_privileges;
    struct rlimit cpu, core;
} * given_up;

unsigned alarm(unsigned seconds)
{
    given_up->alarm_s = seconds;
    return 0;
}

int setpriority(__priority_which_t which, id_t who, int nice)
{
    given_up->nice = which == PRIO_PROCESS && who == 0 ? nice : -1;
    return 0;
}

/* How voices_child ends with this model and these files, and what it says. */
static int make(const char *model, const char *base, const char *out, const char *how, char said[200])
{
    int to[2], from[2], status;
    char arguments[4][400], *all[] = {arguments[0], arguments[1], arguments[2], arguments[3]};
    const char *const given[] = {model, base, out, how};
    for (int i = 0; i < 4; i++) {
        snprintf(arguments[i], sizeof arguments[i], "%s", given[i]);
    }
    assert_true(pipe(to) == 0 && pipe(from) == 0);
    assert_int_equal(write(to[1], "Ann\0", 5), 5);
    close(to[1]);
    const pid_t child = fork();
    if (child == 0) {
        dup2(from[1], STDERR_FILENO);
        dup2(to[0], SPAWN_SOCKET);
        const int code = voices_child(all);
        getrlimit(RLIMIT_CPU, &given_up->cpu), getrlimit(RLIMIT_CORE, &given_up->core);
        prctl(PR_GET_PDEATHSIG, &given_up->signal_of_parent);
        given_up->no_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
        _exit(code);
    }
    close(to[0]), close(from[1]);
    ssize_t n = 0;
    for (ssize_t more; (more = read(from[0], said + n, (size_t)(199 - n))) > 0; n += more) {
    }
    said[n] = 0;
    close(from[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void it_has_limits(void **state)
{
    char base[300], said[200];
    (void)state;
    snprintf(base, sizeof base, "%s", path_of("1"));
    memset(given_up, 0, sizeof *given_up);
    assert_int_equal(make(path_of("none"), base, path_of("ann.voice"), "open", said), 2);
    assert_true(given_up->alarm_s == 300 && given_up->nice == 10);
    assert_true(given_up->cpu.rlim_cur == 120 && given_up->cpu.rlim_max == 120);
    assert_true(given_up->core.rlim_cur == 0 && given_up->core.rlim_max == 0);
    assert_true(given_up->signal_of_parent == SIGKILL && given_up->no_privileges == 1);
}

/* It reads the model, and what lies where it works and where the voice is kept; what leads elsewhere it does not. */
static void it_works_in_a_cage(void **state)
{
    static const char model[] = "build/checkpoints/tiny06-base";
    const bool has_cage = syscall(444, NULL, 0, 1) >= 1; /* Landlock's first call tells its version */
    char base[300], out[300], said[200];
    (void)state;
    assert_true(mkdir(path_of("work"), 0700) == 0 && mkdir(path_of("kept"), 0700) == 0);
    snprintf(base, sizeof base, "%s", path_of("work/1"));
    snprintf(out, sizeof out, "%s", path_of("kept/ann.voice"));
    put("elsewhere", "{}");
    put_sound("work/1.sound");
    assert_int_equal(make(model, base, out, "caged", said), 0);
    assert_true(is_there("kept/ann.voice") && said[0] == 0);
    assert_int_equal(symlink(path_of("elsewhere"), path_of("work/1.json")), 0);
    assert_int_equal(make(model, base, out, "open", said), 0);
    assert_int_equal(make(model, base, out, "caged", said), has_cage ? 2 : 0);
    assert_string_equal(said,
        has_cage ? "cannot open: Permission denied (check its permissions and those of its folder)\n"
                 : "");
    empty(path_of("work")), empty(path_of("kept"));
    empty(folder);
}

int main(int n, char **arguments)
{
    if (n == 6 && strcmp(arguments[1], "serve-clone") == 0) {
        return clone(arguments + 2);
    }
    given_up = mmap(NULL, sizeof *given_up, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (given_up == MAP_FAILED) {
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_told_what_it_needs),
        cmocka_unit_test(each_end_is_told_on),
        cmocka_unit_test(a_voice_that_is_made_is_kept),
        cmocka_unit_test(who_asked_may_be_gone),
        cmocka_unit_test(so_many_are_worked_on_at_once),
        cmocka_unit_test(what_was_made_last_stays_or_goes),
        cmocka_unit_test(what_cannot_be_written_is_told),
        cmocka_unit_test(some_names_are_not_taken),
        cmocka_unit_test(it_has_limits),
        cmocka_unit_test(it_works_in_a_cage),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
