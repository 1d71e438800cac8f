/* SPDX-License-Identifier: Apache-2.0
 * From what was typed to a voice or to why there is none; and voices that machines share, from a posed store on a posed
 * clock. */
#include <sys/stat.h>
#include <time.h>

#include "cli/voice/shared_voices.h"
#include "cli/voice/voice_lookup.h"
#include "store/mirror.h"
#include "tests/cli/typed.h"

#define SPEAKER "build/checkpoints/eos-first"
#define BASE "build/checkpoints/tiny06-base"

/* ---- The store ---- */

static struct {
    int64_t now_ns;
    utter_status open, look;
    bool has_changed;
    int n_opened, n_looked;
    bool (*stop)(void);
    char url[128], option[32], cache[PATH_MAX];
} store;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
utter_status __wrap_mirror_open(
    struct mirror **mirror, const char *url, const char *option, const char *cache, utter_error *error);
utter_status __wrap_mirror_look(
    struct mirror *mirror, mirror_changed_fn *changed, void *user, utter_error *error);
void __wrap_mirror_stop_by(struct mirror *mirror, bool (*stop)(void));
const char *__wrap_mirror_folder(const struct mirror *mirror);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){store.now_ns / 1000000000, store.now_ns % 1000000000};
    return 0;
}

utter_status __wrap_mirror_open(
    struct mirror **mirror, const char *url, const char *option, const char *cache, utter_error *error)
{
    store.n_opened++;
    snprintf(store.url, sizeof store.url, "%s", url);
    snprintf(store.option, sizeof store.option, "%s", option);
    snprintf(store.cache, sizeof store.cache, "%s", cache);
    *mirror = store.open ? NULL : (struct mirror *)&store;
    snprintf(error->text, sizeof error->text, "%s", store.open ? "no such store" : "");
    return store.open;
}

/* Who waits for a look waits five seconds. */
utter_status __wrap_mirror_look(
    struct mirror *mirror, mirror_changed_fn *changed, void *user, utter_error *error)
{
    assert_ptr_equal(mirror, &store);
    store.n_looked++;
    if (store.has_changed) {
        changed(user, "ann.voice");
    }
    if (store.stop) {
        static const int later_ms[] = {0, 4999, 2};
        for (int i = 0; i < 3; i++) {
            store.now_ns += later_ms[i] * 1000000LL;
            assert_int_equal(store.stop(), i == 2);
        }
    }
    if (error) {
        snprintf(error->text, sizeof error->text, "%s", store.look ? "the store is away" : "");
    }
    return store.look;
}

void __wrap_mirror_stop_by(struct mirror *mirror, bool (*stop)(void))
{
    assert_ptr_equal(mirror, &store);
    assert_true(!store.stop != !stop);
    store.stop = stop;
}

const char *__wrap_mirror_folder(const struct mirror *mirror)
{
    assert_ptr_equal(mirror, &store);
    return support_path("");
}

static void voices_of_a_store_are_those_of_its_copy(void **state)
{
    (void)state;
    store.now_ns = 1000000000000;
    assert_false(shared_voices_look()); /* nobody has asked for one */
    assert_int_equal(store.n_looked, 0);
    for (int i = 0; i < 4; i++) { /* there is none; it is away; the same, quietly; it is there */
        struct settings s = {.voices = {.given = true, .text = "s3://bucket/voices"}};
        s.quiet.given = i == 2;
        store.open = i == 0 ? UTTER_E_ARGUMENT : UTTER_OK;
        store.look = i == 3 ? UTTER_OK : UTTER_E_DEVICE;
        heard_begin();
        int code = shared_voices_open(&s);
        heard_assert(i == 0   ? "utter: no such store"
                     : i == 1 ? "utter: note: the store is away; voices that are here already are used"
                              : "");
        assert_int_equal(code, i == 0);
        assert_string_equal(s.voices.text, i == 0 ? "s3://bucket/voices" : support_path(""));
        assert_int_equal(store.n_opened, i + 1);
        assert_int_equal(store.n_looked, i);
        assert_string_equal(store.url, "s3://bucket/voices");
        assert_string_equal(store.option, "--voices");
        assert_string_equal(store.cache, support_path("home/utter"));
    }
    /* Something has come, and the store could be asked. */
    for (int i = 0; i < 4; i++) {
        store.has_changed = i % 2;
        store.look = i < 2 ? UTTER_OK : UTTER_E_DEVICE;
        assert_int_equal(shared_voices_look(), i == 1);
        assert_null(store.stop);
    }
}

/* ---- Names ---- */

static utter_model *speaker, *base;

static void assert_found(
    const char *typed_name, utter_model *model, const char *voices, const char *name, const char *says)
{
    utter_voice *voice;
    utter_error error = {0};
    char folder[PATH_MAX], named[8 * PATH_MAX];
    snprintf(folder, sizeof folder, "%s", voices ? support_path(voices) : "");
    snprintf(named, sizeof named, "%s", typed_in_folder(typed_name));
    const struct settings s = {.voices = {.given = voices != NULL, .text = folder}};
    utter_status status = voice_find(&voice, model, &s, named, &error);
    assert_int_equal(voice != NULL, name != NULL);
    assert_int_equal(status == UTTER_OK, name != NULL);
    if (name) {
        assert_string_equal(utter_voice_name(voice), name);
    } else {
        assert_string_equal(error.text, typed_in_folder(says));
    }
    utter_voice_free(&voice);
}

static void a_name_is_a_preset_a_file_or_nothing(void **state)
{
    (void)state;
    static const char known[] =
        "(known: serena, vivian, uncle_fu, ryan, aiden, ono_anna, sohee, eric, dylan)";
    char unknown[256];
    snprintf(unknown, sizeof unknown, "unknown voice \"nobody\" %s", known);
    assert_found("ryan", speaker, NULL, "ryan", NULL);
    assert_found("RYAN", speaker, "", "ryan", NULL);
    assert_found("ryan", base, "", "of a file", NULL); /* which has no presets */
    assert_found("ryan", speaker, "", "ryan", NULL);   /* whatever lies there */
    assert_found("ann", speaker, "", "of a file", NULL);
    assert_found("ann", NULL, "", "of a file", NULL);
    assert_found("@ann.voice", NULL, NULL, "of a file", NULL);
    assert_found("nobody", speaker, "", NULL, unknown);
    assert_found("nobody", base, "deep", NULL,
        "unknown voice \"nobody\": no nobody.voice in @deep (utter voices lists what there is)");
    assert_found("anm", NULL, "", NULL,
        "unknown voice \"anm\": no anm.voice in @ (did you mean ann? utter voices lists what there "
        "is)");
    assert_found("@nobody.voice", base, "", NULL,
        "@nobody.voice: cannot open: No such file or directory (check the name)");
    assert_found("bad", base, "", NULL, "@/bad.voice: no sealed file, or damaged: its seal is missing");
    /* The user's own come second, and names from there are near as well. */
    assert_found("own", NULL, "deep", "of a file", NULL);
    assert_found("owm", NULL, "deep", NULL,
        "unknown voice \"owm\": no owm.voice in @deep (did you mean own? utter voices lists what there "
        "is)");
}

static void a_recording_is_no_voice_yet(void **state)
{
    (void)state;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_found("@ref.wav", speaker, NULL, NULL,
        "@ref.wav: a recording, and no voice yet (utter clone -m BASE @ref.wav -o NAME.voice makes one "
        "of it)");
    assert_int_equal(chdir(support_folder()), 0);
    assert_found("ref.wav", speaker, NULL, NULL,
        "ref.wav: a recording, and no voice yet (utter clone -m BASE ref.wav -o NAME.voice makes one "
        "of it)");
    /* A voice of that name is one, also beside a recording. */
    assert_found("ref.wav", speaker, "deep", "of a file", NULL);
    assert_int_equal(chdir(before), 0);
    assert_found("song.mp3", speaker, NULL, NULL,
        "song.mp3: no such file, and no voice has this name (utter voices lists what there is)");
    assert_found("song.mp3", base, "", NULL,
        "song.mp3: no such file, and no voice has this name (utter voices lists what there is)");
}

static void without_a_folder_there_is_nothing(void **state)
{
    (void)state;
    char home[PATH_MAX], data[PATH_MAX];
    snprintf(home, sizeof home, "%s", getenv("HOME"));
    snprintf(data, sizeof data, "%s", getenv("XDG_DATA_HOME"));
    unsetenv("HOME");
    unsetenv("XDG_DATA_HOME");
    assert_found("nobody", base, NULL, NULL,
        "unknown voice \"nobody\": no nobody.voice in the search path, which is empty (utter voices "
        "lists what "
        "there is)");
    setenv("HOME", home, 1);
    setenv("XDG_DATA_HOME", data, 1);
}

static int start(void **state)
{
    size_t n;
    typed_start(state);
    typed_record();
    utter_model_options o;
    utter_model_options_init(&o);
    o.device = "cpu";
    o.n_threads = 1;
    mkdir(support_path("home"), 0700);
    mkdir(support_path("home/utter"), 0700);
    mkdir(support_path("home/utter/voices"), 0700);
    mkdir(support_path("deep"), 0700);
    if (utter_model_open(&speaker, SPEAKER, &o, NULL) || utter_model_open(&base, BASE, &o, NULL)) {
        return 1;
    }
    utter_voice *voice;
    utter_clone_options made;
    utter_clone_options_init(&made);
    made.name = "of a file";
    if (utter_voice_clone(&voice, base, support_path("ref.wav"), &made, NULL, NULL) ||
        utter_voice_save(voice, support_path("ann.voice"), NULL)) {
        return 1;
    }
    utter_voice_free(&voice);
    char *file = support_read_file(support_path("ann.voice"), &n);
    static const char *const names[] = {
        "ryan.voice", "home/utter/voices/own.voice", "deep/ref.wav.voice"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        support_write_file(support_path(names[i]), file, n);
    }
    free(file);
    support_write_file(support_path("bad.voice"), "bad", 3);
    return 0;
}

static int end(void **state)
{
    utter_model_close(&speaker);
    utter_model_close(&base);
    return typed_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_a_preset_a_file_or_nothing),
        cmocka_unit_test(a_recording_is_no_voice_yet),
        cmocka_unit_test(without_a_folder_there_is_nothing),
        cmocka_unit_test(voices_of_a_store_are_those_of_its_copy),
    };
    return cmocka_run_group_tests_name("voice_find", tests, start, end);
}
