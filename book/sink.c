/* SPDX-License-Identifier: Apache-2.0
 * utter_sound or ffmpeg. */
#include "book/sink.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

bool sink_chapter_path(char path[PATH_MAX], const char *name, size_t chapter)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    size_t stem = dot && dot > (slash ? slash + 1 : name) ? (size_t)(dot - name) : strlen(name);
    int n = snprintf(path, PATH_MAX, "%.*s-%04zu%s", (int)stem, name, chapter + 1, name + stem);
    return n < PATH_MAX;
}

/* Opens a file of the whole book, or of chapter `number`, from 1, and says in it what it is. */
static utter_status open_file(struct sink *sink, const char *path, size_t number, utter_error *error)
{
    const struct book *book = sink->book;
    char track[24] = "";
    const char *title = number ? book->chapters[number - 1].title : book->title;
    utter_status status = utter_sound_create(
        &sink->sound, path, sink->settings.format, UTTER_SAMPLE_S16, sink->settings.rate, error);
    if (number) {
        snprintf(track, sizeof track, "%zu", number);
    }
    const struct {
        const char *key, *text;
    } tags[] = {{"title", title}, {"artist", book->author}, {"album", book->title}, {"track", track}};
    for (size_t i = 0; i < sizeof tags / sizeof *tags && status == UTTER_OK; i++) {
        status = utter_sound_tag(sink->sound, tags[i].key, tags[i].text, error);
    }
    return status;
}

utter_status sink_open(struct sink *sink, const struct sink_settings *settings, const struct book *book,
    utter_error *error)
{
    *sink = (struct sink){.settings = *settings, .book = book};
    sink->m4b = settings->format && strcmp(settings->format, "m4b") == 0;
    if (sink->m4b) {
        sink->settings.format = NULL;
        return encoder_open(&sink->encoder, book, settings->folder, settings->rate, error);
    }
    return settings->split ? UTTER_OK : open_file(sink, settings->path, 0, error);
}

static void end_mark(struct sink *sink)
{
    if (sink->n_marks > 0) {
        sink->marks[sink->n_marks - 1].end = sink->n_samples;
    }
}

utter_status sink_chapter(struct sink *sink, size_t chapter, utter_error *error)
{
    if (sink->settings.split) {
        char path[PATH_MAX];
        bool any = sink->sound != NULL;
        utter_status status = utter_sound_close(&sink->sound, error);
        sink->n_files += status == UTTER_OK && any;
        if (status == UTTER_OK && !sink_chapter_path(path, sink->settings.path, chapter)) {
            status =
                error_set(error, UTTER_E_ARGUMENT, "%s: the name is too long", sink->settings.path);
        }
        return status ? status : open_file(sink, path, chapter + 1, error);
    }
    if (sink->book->timed) {
        return UTTER_OK;
    }
    end_mark(sink);
    if (sink->n_marks == sink->room) {
        size_t room = sink->room ? 2 * sink->room : 64;
        struct encoder_mark *grown = memory_resize(sink->marks, sink->room, room, sizeof *grown);
        if (!grown) {
            return error_memory(error, "the chapters of a file");
        }
        sink->marks = grown;
        sink->room = room;
    }
    sink->marks[sink->n_marks++] =
        (struct encoder_mark){sink->book->chapters[chapter].title, sink->n_samples, sink->n_samples};
    return UTTER_OK;
}

utter_status sink_write(struct sink *sink, const float *pcm, size_t n, utter_error *error)
{
    sink->n_samples += n;
    return sink->m4b ? encoder_write(sink->encoder, pcm, n, error)
                     : utter_sound_write(sink->sound, pcm, n, error);
}

utter_status sink_close(struct sink *sink, bool (*stop)(void), utter_error *error)
{
    bool any = sink->sound || sink->encoder;
    end_mark(sink);
    utter_status status = sink->encoder ? encoder_close(&sink->encoder, sink->settings.path, sink->book,
                                              sink->marks, sink->n_marks, stop, error)
                                        : utter_sound_close(&sink->sound, error);
    sink->n_files += status >= 0 && any;
    return status;
}

void sink_fini(struct sink *sink)
{
    utter_sound_abort(&sink->sound);
    encoder_abort(&sink->encoder);
    memory_free(sink->marks);
    *sink = (struct sink){0};
}
