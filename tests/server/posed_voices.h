/* SPDX-License-Identifier: Apache-2.0
 * A server that has voices alone, in a folder that the test fills. */
#ifndef TESTS_SERVER_POSED_VOICES_H
#define TESTS_SERVER_POSED_VOICES_H

#include "tests/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/sound/encode.h"
#include "server/speech/voices_parts.h"
#include "voice/voice.h"

enum { WIDTH = 8, OTHER_WIDTH = 16 };

static char folder[] = P_tmpdir "/utter-%d-voices-XXXXXX"; /* a path is no format */
static struct serve_options options;
static struct server s;
static struct refusal refusal;

static inline char *path_of(const char *name)
{
    static char path[2][300];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static inline void put(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static inline bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

/* One voice; with words (and a frame of codes) where `said` is given. */
static inline utter_voice *voice_of(const char *name, int width, const char *said)
{
    static const float vector[OTHER_WIDTH];
    static const int32_t codes[4];
    utter_voice *voice;
    assert_int_equal(
        voice_new_clone(&voice, name, vector, width, said ? codes : NULL, said ? 1 : 0, 4, said, NULL),
        UTTER_OK);
    return voice;
}

static inline void put_voice(const char *file, const char *name, int width, const char *said)
{
    utter_voice *voice = voice_of(name, width, said);
    assert_int_equal(utter_voice_save(voice, path_of(file), NULL), UTTER_OK);
    utter_voice_free(&voice);
}

/* A second of a tone that comes and goes. */
static inline void put_sound(const char *name)
{
    struct wire_out wav = {0};
    samples_put_wav(&wav, SAMPLES_S16, 24000);
    for (int i = 0; i < 24000; i++) {
        const float pcm = 0.3F * sinf(0.06F * (float)i) * sinf(0.0007F * (float)i);
        samples_put(&wav, SAMPLES_S16, &pcm, 1);
    }
    encode_true_sizes(ENCODE_WAV, wav.bytes, wav.n, 24000);
    FILE *file = fopen(path_of(name), "w");
    assert_true(file && fwrite(wav.bytes, 1, wav.n, file) == wav.n && fclose(file) == 0);
    wire_fini(&wav);
}

static inline void empty(const char *all)
{
    DIR *d = opendir(all);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        unlinkat(dirfd(d), e->d_name, 0);
        unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
    }
    closedir(d);
}

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    empty(folder);
    return rmdir(folder);
}

/* A server of that kind, with the presets "clara" and "miles" but where its model speaks with recordings. */
static inline void begin(const char *kind)
{
    options = (struct serve_options){.voices = folder, .quiet = true, .model = ""};
    s = (struct server){.options = &options, .was_ready = true};
    s.ready = (struct wire_ready){.kind_name = kind,
        .width = WIDTH,
        .voices = {"clara", "miles"},
        .n_voices = strcmp(kind, "base") == 0 ? 0 : 2};
    assert_true(voices_open(&s));
    assert_string_equal(s.voice_folders[0], s.voices->folder);
    assert_string_equal(s.voice_folders[1], s.voices->temporary);
    refusal = (struct refusal){0};
}

static inline void end(void)
{
    char temporary[300];
    snprintf(temporary, sizeof temporary, "%s", s.voices->temporary);
    voices_close(&s);
    assert_null(s.voices);
    assert_int_not_equal(access(temporary, F_OK), 0);
    empty(folder);
}

/* "name of file, ..." in the order of the table. */
static inline const char *table(void)
{
    static char all[1000];
    const struct voice_entry *v;
    int n = 0;
    all[0] = 0;
    TAILQ_FOREACH(v, &s.voices->entries, entry)
    {
        assert_int_equal(strncmp(v->file, s.voices->folder, strlen(s.voices->folder)), 0);
        sprintf(all + strlen(all), "%s of %s, ", v->name, strrchr(v->file, '/') + 1);
        n++;
    }
    assert_int_equal(n, s.voices->n);
    return all;
}

#endif
