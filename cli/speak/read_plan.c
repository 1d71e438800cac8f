/* SPDX-License-Identifier: Apache-2.0
 * Names of files; the key of each section: everything that its sound depends on. */
#include "cli/speak/read_plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/tables/languages.h"
#include "cli/model/checkpoint.h"
#include "cli/report.h"
#include "cli/speak/markup.h"
#include "cli/speak/read_chapters.h"
#include "cli/voice/voice_lookup.h"

/* ---- Where it goes ---- */

static bool ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcasecmp(text + n - m, ending) == 0;
}

static size_t stem_length(const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    return dot && dot > (slash ? slash + 1 : name) ? (size_t)(dot - name) : strlen(name);
}

static char *with_ending(const char *name, size_t stem, const char *ending)
{
    char *made = memory_new(stem + strlen(ending) + 1, 1);
    if (made) {
        memcpy(made, name, stem);
        strcpy(made + stem, ending);
    }
    return made;
}

/* Without ffmpeg there is no m4b: a file for each chapter, in a format that needs none. */
static bool go_without(struct read_place *p, const char *output)
{
    p->m4b = false;
    p->split = true;
    p->output = with_ending(output, stem_length(output), ".opus");
    if (p->output) {
        note("m4b needs ffmpeg, which is not here (apt-get install ffmpeg): each chapter is a file of "
             "its own");
    }
    return p->output != NULL;
}

static bool name_output(
    struct read_place *p, const struct invocation *invocation, const struct book *book)
{
    const struct settings *s = &invocation->settings;
    const char *book_path = invocation->words[0], *slash = strrchr(book_path, '/');
    const char *name = slash ? slash + 1 : book_path;
    const char *format = s->format.text, *ending = format ? format : book->timed ? "wav" : "m4b";
    char dotted[16];
    snprintf(dotted, sizeof dotted, ".%s", ending);
    char *output =
        s->output.given ? memory_string(s->output.text) : with_ending(name, stem_length(name), dotted);
    p->m4b = output && (format ? strcmp(format, "m4b") == 0
                               : ends_with(output, ".m4b") || ends_with(output, ".m4a"));
    p->split = s->split.given;
    bool lacks = p->m4b && !encoder_is_here();
    if (lacks && go_without(p, output)) {
        memory_free(output);
        return true;
    }
    p->output = output;
    return output != NULL && !lacks;
}

int read_place_find(struct read_place *p, const struct invocation *invocation, struct book *book)
{
    char first[PATH_MAX];
    size_t chapter = 0;
    *p = (struct read_place){0};
    if (!name_output(p, invocation, book)) {
        return fail(2, "out of memory");
    }
    if (p->m4b && p->split) {
        return fail(1, "--split: an m4b holds all chapters (--format mp3, opus, flac or wav makes a "
                       "file of each)");
    }
    while (!read_chapters_have(&invocation->settings, chapter)) {
        chapter++;
    }
    if (!sink_chapter_path(first, p->output, chapter)) {
        return fail(1, "%s: the name is too long", p->output);
    }
    p->first = memory_string(p->split ? first : p->output);
    p->shown = p->split ? memory_new(strlen(first) + 16, 1) : memory_string(p->output);
    p->folder = with_ending(p->output, strlen(p->output), ".parts");
    if (!p->first || !p->shown || !p->folder) {
        return fail(2, "out of memory");
    }
    if (p->split) {
        snprintf(p->shown, strlen(first) + 16, "%s ...", first);
    }
    if (!book->title[0]) {
        const char *name = invocation->words[0], *slash = strrchr(name, '/');
        name = slash ? slash + 1 : name;
        memory_free(book->title);
        book->title = with_ending(name, stem_length(name), "");
    }
    return book->title ? 0 : fail(2, "out of memory");
}

void read_place_fini(struct read_place *p)
{
    memory_free(p->output);
    memory_free(p->first);
    memory_free(p->shown);
    memory_free(p->folder);
    *p = (struct read_place){0};
}

/* ---- What is spoken ---- */

const char *read_language(
    const utter_model *model, const struct settings *settings, const struct book *book)
{
    const char *wanted = language_name(book->language);
    for (int i = 0; !settings->language.given; i++) {
        const char *name = utter_model_language_name(model, i);
        if (!name) {
            break;
        }
        if (strcasecmp(name, wanted) == 0) {
            return name;
        }
    }
    return settings->language.text;
}

static void write_sampling(char *text, size_t size, const utter_sampling *s)
{
    snprintf(text, size, "%.9g/%d/%.9g/%.9g", (double)s->temperature, s->top_k, (double)s->top_p,
        (double)s->repetition_penalty);
}

/* What else the sound of a text depends on. */
static void write_settings(char *text, size_t size, const utter_model *model,
    const utter_stream_options *o, const utter_reading_options *reading)
{
    char talker[128], predictor[128], texts[IDENTITY_SIZE];
    utter_model_info info = checkpoint_info(model);
    write_sampling(talker, sizeof talker, &o->talker);
    write_sampling(predictor, sizeof predictor, &o->predictor);
    identity_of_texts(
        texts, (const char *const[]){o->instruct ? o->instruct : "", reading->cast ? reading->cast : "",
                   reading->lexicon ? reading->lexicon : "", NULL});
    snprintf(text, size,
        "weights %s, language %s, texts %.16s, layout %d, talker %s, predictor %s, seed %llu, "
        "frames %d, guard %d, retries %d, markup %d, spelled %d, carry %d",
        info.weights, o->language ? o->language : "auto", texts, (int)o->layout, talker, predictor,
        (unsigned long long)o->seed, o->max_frames, o->guard, reading->retries, reading->markup,
        reading->spell_out, reading->carry);
}

/* Counted up by whoever changes what sound a section has of the same codes (src/reading: seam, stress): a book that is
 * gone on with is then spoken anew, instead of half by either rule. */
static const char sound_rule[] = "section 2";

/* The text of a section with all that changes how it is said. */
static utter_status text_identity(char hex[IDENTITY_SIZE], const struct section *section,
    const utter_reading_options *reading, const struct settings *settings, utter_error *error)
{
    utter_reading_options o = *reading;
    char *spoken = NULL;
    const char *prefix = section->prefix ? section->prefix : "";
    size_t before = strlen(prefix), bytes = before + section->bytes;
    identity_of_bytes(hex, section->text, section->bytes);
    if (section->prefix) {
        identity_of_texts(hex, (const char *const[]){hex, prefix, NULL});
    }
    if (o.markup == UTTER_MARKUP_NONE && !o.cast) {
        return UTTER_OK;
    }
    char *text = memory_new(bytes + 1, 1);
    if (!text) {
        return error_memory(error, "a section");
    }
    memcpy(text, prefix, before);
    memcpy(text + before, section->text, section->bytes);
    o.spell_out = false;
    o.lexicon = NULL;
    utter_status status = utter_text_spoken(&spoken, text, bytes, &o, NULL, NULL, NULL, NULL, error);
    memory_free(text);
    status = status ? status : voice_called_identity(hex, spoken, settings, error);
    utter_memory_free(spoken);
    return status;
}

/* A text that begins as SSML is one document, which cannot be cut. */
static bool is_document(const struct chapter *chapter, int markup)
{
    bool begins = markup_is_forgotten(chapter->text, strlen(chapter->text));
    return markup == UTTER_MARKUP_SSML || (markup == UTTER_MARKUP_AUTO && begins);
}

static utter_status cut(struct read_plan *plan, const struct book *book, int markup, const char *cast,
    const struct settings *settings, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (size_t i = 0; i < book->n_chapters && status == UTTER_OK; i++) {
        if (read_chapters_have(settings, i)) {
            struct sections_rules rules = {book->timed || is_document(&book->chapters[i], markup),
                markup != UTTER_MARKUP_NONE, cast};
            status = sections_add(&plan->sections, &book->chapters[i], i, rules, error);
        }
    }
    if (status == UTTER_OK && plan->sections.n == 0) {
        status = error_set(error, UTTER_E_ARGUMENT, "--chapters: there is no text in them");
    }
    plan->n_tasks = plan->sections.n;
    plan->tasks = status ? NULL : memory_new(plan->n_tasks, sizeof *plan->tasks);
    return status ? status : plan->tasks ? UTTER_OK : error_memory(error, "the sections of a book");
}

utter_status read_plan_open(struct read_plan *plan, const struct book *book,
    const struct read_place *place, const utter_model *model, const utter_stream_options *options,
    const utter_reading_options *reading, const struct settings *settings, utter_error *error)
{
    char model_hash[IDENTITY_SIZE], voice[IDENTITY_SIZE], text[IDENTITY_SIZE], written[1024];
    *plan = (struct read_plan){.store.manifest = -1};
    const char *folder = checkpoint_folder(settings);
    utter_status status = cut(plan, book, reading->markup, reading->cast, settings, error);
    status = status || !folder ? status : identity_of_model(model_hash, folder, error);
    if (status || !folder) {
        return status;
    }
    voice_identity(voice, options->voice);
    write_settings(written, sizeof written, model, options, reading);
    for (size_t i = 0; i < plan->n_tasks; i++) {
        struct task *task = &plan->tasks[i];
        task->section = &plan->sections.at[i];
        if ((status = text_identity(text, task->section, reading, settings, error))) {
            return status;
        }
        identity_of_texts(
            task->entry.key, (const char *const[]){sound_rule, text, model_hash, voice, written, NULL});
    }
    const char **keys = memory_new(plan->n_tasks + 1, sizeof *keys);
    for (size_t i = 0; keys && i < plan->n_tasks; i++) {
        keys[i] = plan->tasks[i].entry.key;
    }
    if (!keys) {
        return error_memory(error, "the sections of a book");
    }
    identity_of_texts(text, keys);
    memory_free(keys);
    struct store_about about = {text, model_hash, voice, written};
    status = store_open(&plan->store, place->folder, &about, settings->fresh.given, error);
    bool first = true;
    for (size_t i = 0; i < plan->n_tasks && status == UTTER_OK; i++) {
        const struct store_entry *entry = store_find(&plan->store, plan->tasks[i].entry.key);
        if (entry) {
            plan->tasks[i].entry = *entry;
            plan->tasks[i].ready = true;
        }
        first = first && entry;
        plan->n_first += first;
        plan->n_found += entry != NULL;
    }
    return status;
}

size_t read_plan_chapters(const struct read_plan *plan)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_tasks; i++) {
        n += plan->tasks[i].section->end == SECTION_CHAPTER;
    }
    return n;
}

void read_plan_close(struct read_plan *plan)
{
    store_close(&plan->store);
    memory_free(plan->tasks);
    sections_fini(&plan->sections);
    *plan = (struct read_plan){.store.manifest = -1};
}
