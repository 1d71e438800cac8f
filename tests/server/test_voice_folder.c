/* SPDX-License-Identifier: Apache-2.0
 * A folder of voice files as the server takes it: which file has which name, whom a request means, and what is told of
 * the voices. */
#include "tests/server/posed_voices.h"

/* ---- What is in the folder ---- */

/* Files come in the order of their names; the second voice of a name is named for its file, or left out. */
static void files_become_names(void **state)
{
    (void)state;
    put_voice("a.voice", "Ann", WIDTH, NULL);
    put_voice("b.voice", "ann", WIDTH, NULL);
    put_voice("c.voice", "", WIDTH, NULL);
    put_voice("d.voice", "dora", WIDTH, NULL);
    put_voice("dora.voice", "ANN", WIDTH, NULL); /* neither name is free */
    put_voice(".e.voice", "Eve", WIDTH, NULL);
    put_voice(".voice", "Flo", WIDTH, NULL);
    put_voice("g.voices", "Gus", WIDTH, NULL);
    put_voice("voice", "Hal", WIDTH, NULL);
    put("i.voice", "no voice");
    begin("base");
    assert_string_equal(table(), "Ann of a.voice, b of b.voice, c.voice of c.voice, dora of d.voice, ");
    /* A file changes, comes and goes. */
    put_voice("a.voice", "Amy", WIDTH, NULL);
    voices_read_again(&s, path_of("a.voice"));
    assert_string_equal(table(), "b of b.voice, c.voice of c.voice, dora of d.voice, Amy of a.voice, ");
    put_voice("j.voice", "Jim", WIDTH, NULL);
    voices_read_again(&s, path_of("j.voice"));
    assert_int_equal(unlink(path_of("b.voice")), 0);
    voices_read_again(&s, path_of("b.voice"));
    voices_read_again(&s, path_of("c.voice"));
    assert_string_equal(
        table(), "dora of d.voice, Amy of a.voice, Jim of j.voice, c.voice of c.voice, ");
    voices_insert(&s, voice_entry_read(path_of("a.voice"), NULL)); /* takes the place of its namesake */
    assert_string_equal(
        table(), "dora of d.voice, Jim of j.voice, c.voice of c.voice, Amy of a.voice, ");
    /* So many are kept. */
    put_voice("k.voice", "Kim", WIDTH, NULL);
    s.voices->n += LIMIT_VOICES - 4;
    voices_read_again(&s, path_of("k.voice"));
    assert_null(voices_entry(&s, "Kim"));
    s.voices->n--;
    voices_read_again(&s, path_of("k.voice"));
    assert_non_null(voices_entry(&s, "Kim"));
    s.voices->n -= LIMIT_VOICES - 5;
    end();
}

/* What cannot be taken is told in the log, with its reason. */
static void files_that_are_no_voices_are_told(void **state)
{
    int kept = dup(STDERR_FILENO), ends[2];
    char said[2000] = "", expected[400];
    (void)state;
    put_voice("a.voice", "Ann", WIDTH, NULL);
    put_voice("ann.voice", "ANN", WIDTH, NULL);
    put("i.voice", "no voice");
    assert_true(pipe2(ends, O_NONBLOCK) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    options = (struct serve_options){.voices = folder, .model = ""};
    s = (struct server){.options = &options, .was_ready = true};
    assert_true(voices_open(&s));
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    assert_true(read(ends[0], said, sizeof said - 1) > 0);
    close(kept), close(ends[0]), close(ends[1]);
    snprintf(expected, sizeof expected,
        "\"event\":\"voice_unreadable\",\"error\":\"%s/ann.voice: a voice of this name is there\"}",
        folder);
    assert_non_null(strstr(said, expected));
    snprintf(
        expected, sizeof expected, "\"event\":\"voice_unreadable\",\"error\":\"%s/i.voice: ", folder);
    assert_non_null(strstr(said, expected));
    assert_string_equal(table(), "Ann of a.voice, ");
    end();
}

static void a_folder_must_be_there(void **state)
{
    int kept = dup(STDERR_FILENO), ends[2];
    char said[500] = "", expected[500];
    (void)state;
    assert_true(pipe2(ends, O_NONBLOCK) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    options = (struct serve_options){.voices = path_of("none"), .quiet = true};
    s = (struct server){.options = &options};
    assert_false(voices_open(&s));
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    assert_true(read(ends[0], said, sizeof said - 1) > 0);
    close(kept), close(ends[0]), close(ends[1]);
    snprintf(expected, sizeof expected,
        "utter: --voices %s/none: No such file or directory (make the folder first, or check the "
        "name)\n",
        folder);
    assert_string_equal(said, expected);
    voices_close(&s);
    options.voices = NULL; /* none is asked for */
    s = (struct server){.options = &options};
    assert_true(voices_open(&s));
    assert_true(!s.voice_folders[0] && s.voices->folder[0] == 0);
    voices_close(&s);
}

/* ---- Whom a request means ---- */

/* "preset NAME", "file NAME", "" (the model needs none), or why not. */
static const char *find(const struct fields *fields)
{
    static char found[1000];
    struct voices_found v;
    refusal = (struct refusal){0};
    if (!voices_find(&s, fields, &v, &refusal)) {
        snprintf(found, sizeof found, "%d %s: %s", refusal.status, refusal.param, refusal.message);
        return found;
    }
    assert_true(!v.preset || !v.file[0]);
    snprintf(found, sizeof found, "%s%s",
        v.preset    ? "preset "
        : v.file[0] ? "file "
                    : "",
        v.preset    ? v.preset
        : v.file[0] ? strrchr(v.file, '/') + 1
                    : "");
    return found;
}

static void expect_found(const char *name, const char *found)
{
    const struct fields fields = {.voice = name};
    if (strcmp(find(&fields), found) != 0) {
        fail_msg("%s: %s instead of %s", name ? name : "(none)", find(&fields), found);
    }
}

static void put_some(void)
{
    put_voice("0.voice", "wide", OTHER_WIDTH, NULL);
    put_voice("1.voice", "Ann", WIDTH, NULL);
    put_voice("2.voice", "Clara", WIDTH, "said");
}

static void a_voice_is_found_by_its_name(void **state)
{
    static const char none[] =
        "400 voice: \"voice\": no voice is here yet (upload one with POST /v1/audio/voices)";
    const struct fields file = {.voice = "Ann", .voice_file = "/x/100%%.voice"};
    (void)state;
    put_some();
    begin("base");
    expect_found("Ann", "file 1.voice");
    expect_found("aNN", "file 1.voice");
    expect_found("CLARA", "file 2.voice");
    expect_found("1", "file 1.voice"); /* as commands know it */
    expect_found("1.voice", "400 voice: \"voice\": no voice '1.voice' (voices: wide, Ann, Clara)");
    expect_found("", "400 voice: \"voice\": no voice '' (voices: wide, Ann, Clara)");
    expect_found(
        "Anne", "400 voice: \"voice\": no voice 'Anne' (did you mean Ann? voices: wide, Ann, Clara)");
    expect_found(
        "wide", "400 voice: \"voice\": 'wide' was made for a model of another width (clone it again)");
    expect_found(
        "0", "400 voice: \"voice\": 'wide' was made for a model of another width (clone it again)");
    expect_found("alloy", "file 1.voice"); /* the first that fits stands for all of them */
    expect_found(NULL, "file 1.voice");
    assert_string_equal(find(&file), "file 100%%.voice");
    s.ready.width = 1;
    expect_found(NULL, none);
    expect_found("alloy", "400 voice: \"voice\": no voice 'alloy' (voices: wide, Ann, Clara)");
    end();
    put_some();
    begin("custom_voice");
    expect_found("clarA", "preset clara"); /* a preset goes before a voice that cannot speak */
    expect_found("MILES", "preset miles");
    expect_found(NULL, "preset clara");
    expect_found("onyx", "preset miles");
    expect_found("nova", "preset clara");
    expect_found(
        "Ann", "400 voice: \"voice\": 'Ann' was made from a recording, which base models speak with");
    expect_found(
        "nobody", "400 voice: \"voice\": no voice 'nobody' (voices: clara, miles, wide, Ann, Clara)");
    s.ready.n_voices = 0;
    expect_found(NULL, none);
    end();
    begin("base");
    expect_found("Ann",
        "400 voice: \"voice\": no voice 'Ann' (voices: none; upload one with POST /v1/audio/voices)");
    end();
    begin("voice_design");
    expect_found("nobody", "");
    expect_found(NULL, "");
    end();
}

/* ---- The voice and the model that a request was meant for ---- */

static char hash_now[2];
static int n_hashed;
static bool cannot_hash;

static bool hash_voice(char *hash, const char *preset, const char *file)
{
    n_hashed++;
    snprintf(hash, 65, "%s of %.40s", hash_now,
        preset ? preset
        : file ? strrchr(file, '/') + 1
               : "none");
    return !cannot_hash;
}

static void a_request_may_name_the_very_voice(void **state)
{
    static const char other[] = "409 voice_hash: \"voice_hash\": the voice \"Ann\" is another one here";
    struct fields fields = {.voice = "Ann", .voice_hash = "h of 1.voice"};
    const struct timespec times[] = {{1, 0}, {1, 1}, {2, 1}};
    (void)state;
    put_some();
    begin("base");
    assert_string_equal(find(&fields), other); /* nobody can say which it is */
    options.hash_voice = hash_voice;
    strcpy(hash_now, "h");
    n_hashed = 0;
    for (int i = 0; i < 2; i++) { /* read once */
        assert_string_equal(find(&fields), "file 1.voice");
        assert_int_equal(n_hashed, 1);
    }
    fields.voice_hash = "i of 1.voice";
    assert_string_equal(find(&fields), other);
    assert_int_equal(n_hashed, 1);
    strcpy(hash_now, "i");
    for (int i = 0; i < 3; i++) { /* and again when it has changed, if by a nanosecond */
        const struct timespec both[] = {times[i], times[i]};
        assert_int_equal(utimensat(AT_FDCWD, path_of("1.voice"), both, 0), 0);
        assert_string_equal(find(&fields), "file 1.voice");
        assert_int_equal(n_hashed, 2 + i);
    }
    put_voice("1.voice", "Ann", WIDTH, NULL); /* another file of the same size and time */
    const struct timespec last[] = {times[2], times[2]};
    assert_int_equal(utimensat(AT_FDCWD, path_of("1.voice"), last, 0), 0);
    assert_string_equal(find(&fields), "file 1.voice");
    assert_int_equal(n_hashed, 5);
    put_voice("1.voice", "Ann", WIDTH, "more bytes");
    cannot_hash = true;
    assert_string_equal(find(&fields), other);
    cannot_hash = false;
    assert_string_equal(find(&fields), "file 1.voice");
    fields = (struct fields){.voice_hash = "i of z.voice", .voice_file = path_of("z.voice")};
    assert_string_equal(find(&fields), "file z.voice"); /* of one that is not in the table */
    end();
    begin("custom_voice");
    options.hash_voice = hash_voice;
    fields = (struct fields){.voice_hash = "i of clara"};
    assert_string_equal(find(&fields), "preset clara");
    fields.voice_hash = "i of miles";
    assert_string_equal(
        find(&fields), "409 voice_hash: \"voice_hash\": the voice \"\" is another one here");
    fields = (struct fields){.model_hash = "m"};
    assert_string_equal(
        find(&fields), "409 model_hash: \"model_hash\": this server's model is another (not known)");
    options.model_hash = "n";
    assert_string_equal(
        find(&fields), "409 model_hash: \"model_hash\": this server's model is another (n)");
    fields.model_hash = "n";
    assert_string_equal(find(&fields), "preset clara");
    end();
}

/* ---- What is told of them ---- */

/* "name kind, ..." of a list. */
static const char *kinds(const json_t *list)
{
    static char all[1000];
    const json_t *v;
    size_t i;
    all[0] = 0;
    json_array_foreach(list, i, v)
    {
        sprintf(all + strlen(all), "%s %s, ", json_string_value(json_object_get(v, "id")),
            json_string_value(json_object_get(v, "kind")));
        assert_string_equal(
            json_string_value(json_object_get(v, "id")), json_string_value(json_object_get(v, "name")));
    }
    return all;
}

#define ALIASES                                                                                        \
    "alloy alias, ash alias, ballad alias, coral alias, echo alias, fable alias, onyx alias, nova "    \
    "alias, sage alias, shimmer alias, verse alias, marin alias, cedar alias, "

static void expect_list(const char *voices)
{
    json_t *all = voices_list(&s, false), *names = voices_list(&s, true);
    assert_string_equal(kinds(json_object_get(all, "voices")), voices);
    /* All that was uploaded is told, whatever it is good for. */
    assert_string_equal(
        kinds(json_object_get(all, "uploaded_voices")), "wide vector, Ann vector, Clara context, ");
    size_t n = json_array_size(json_object_get(names, "voices")), n_aliases = 0;
    for (const char *at = voices; (at = strstr(at, " alias, ")); at++) {
        n_aliases++;
    }
    assert_int_equal(n, json_array_size(json_object_get(all, "voices")) - n_aliases);
    json_decref(all);
    json_decref(names);
}

static void expect_one(const char *name, const char *json)
{
    json_t *one = voices_one(&s, name), *want = json ? json_loads(json, 0, NULL) : NULL;
    if (one && json_object_get(one, "created_at")) {
        assert_true(json_integer_value(json_object_get(one, "created_at")) > 1600000000);
        json_object_del(one, "created_at");
    }
    assert_true(want ? json_equal(one, want) : !one);
    json_decref(one);
    json_decref(want);
}

static void what_there_is_is_told(void **state)
{
    (void)state;
    put_some();
    put("1.json", "{\"consent\":\"yes\",\"owner\":\"x\",\"name\":\"other\"}");
    begin("base");
    expect_list("Ann uploaded, Clara uploaded, " ALIASES);
    s.was_ready = false;
    expect_list("Ann uploaded, Clara uploaded, ");
    s.was_ready = true;
    s.ready.width = 1;
    expect_list("");
    expect_one("ANN", "{\"object\":\"audio.voice\",\"id\":\"Ann\",\"name\":\"Ann\",\"kind\":\"vector\","
                      "\"ref_text\":null,\"consent\":\"yes\"}");
    expect_one("Clara", "{\"object\":\"audio.voice\",\"id\":\"Clara\",\"name\":\"Clara\",\"kind\":"
                        "\"context\",\"ref_text\":\"said\"}");
    end();
    put_some();
    begin("custom_voice");
    expect_list("clara preset, miles preset, " ALIASES);
    expect_one("Miles", "{\"id\":\"miles\",\"name\":\"miles\",\"kind\":\"preset\"}");
    expect_one("ALLOY", "{\"id\":\"alloy\",\"name\":\"alloy\",\"kind\":\"alias\"}");
    expect_one("cedar", "{\"id\":\"cedar\",\"name\":\"cedar\",\"kind\":\"alias\"}");
    expect_one("nobody", NULL);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_become_names),
        cmocka_unit_test(files_that_are_no_voices_are_told),
        cmocka_unit_test(a_folder_must_be_there),
        cmocka_unit_test(a_voice_is_found_by_its_name),
        cmocka_unit_test(a_request_may_name_the_very_voice),
        cmocka_unit_test(what_there_is_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
