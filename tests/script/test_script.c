/* SPDX-License-Identifier: Apache-2.0
 * Scripts against tables: numbers.txt and counting.txt (what is written => what is said), markup.txt (spans, notes,
 * refusals).
 * Of every case, whatever its words: each spoken byte, and each written one, knows bytes of the source, those that were
 * not changed their own, and how the text came changes nothing. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "script/script.h"
#include "script/spell/spell.h"

enum { MOST = 1 << 14, MOST_SPANS = 64 };

/* What came of a text, as the tables write it. */
struct told {
    char text[MOST];
    size_t n;
    char written[MOST]; /* without markup */
    size_t n_written;
    const char *source;
    uint64_t source_at; /* up to here it is told */
};

static void tell(struct told *t, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool newline = text[i] == '\n';
        assert_true(t->n + 3 < MOST);
        t->text[t->n++] = newline ? '\\' : text[i];
        t->text[t->n] = 'n';
        t->n += newline;
    }
    t->text[t->n] = 0;
}

/* A utter_written_fn. */
static void note_written(void *user, uint64_t at, uint64_t bytes, const char *text, size_t n)
{
    struct told *t = user;
    assert_true(n > 0 && at >= t->source_at && t->n_written + n < MOST);
    if (n == bytes) {
        assert_memory_equal(text, t->source + at, n);
    }
    memcpy(t->written + t->n_written, text, n);
    t->n_written += n;
    t->written[t->n_written] = 0;
    t->source_at = at + bytes;
}

static void tell_style(struct told *t, const struct script_span *span)
{
    const struct script_style *s = &span->style;
    char all[600], pause[40], rate[40], volume[40];
    snprintf(pause, sizeof pause, " pause=%.4g", 1000 * span->pause_s);
    snprintf(rate, sizeof rate, " rate=%.3g", s->rate);
    snprintf(volume, sizeof volume, " volume=%.3g", s->volume);
    int n = snprintf(all, sizeof all, "%s%s%s%s%s%s%s%s", span->pause_s >= 0 ? pause : "",
        s->voice ? " voice=" : "", s->voice ? s->voice : "", s->language ? " lang=" : "",
        s->language ? s->language : "", s->rate < 1 || s->rate > 1 ? rate : "",
        s->volume < 1 || s->volume > 1 ? volume : "", s->heading ? " heading" : "");
    if (n > 0) {
        all[0] = '[';
        tell(t, all, (size_t)n);
        tell(t, "]", 1);
    }
}

static void tell_span(struct told *t, const struct script_span *span, const char *source, size_t bytes)
{
    size_t at = 0, before = 0;
    tell_style(t, span);
    for (size_t i = 0; i < span->n_runs; i++) {
        const struct script_run *run = &span->runs[i];
        const char *words = span->text.at + run->spoken;
        assert_int_equal(run->spoken, at);
        assert_true(run->n > 0 && run->source >= before && run->source + run->source_n <= bytes);
        tell(t, words, run->n);
        if (run->same) {
            assert_int_equal(run->n, run->source_n);
            assert_memory_equal(words, source + run->source, run->n);
        } else {
            tell(t, "{", 1);
            tell(t, source + run->source, run->source_n);
            tell(t, "}", 1);
        }
        at += run->n;
        before = run->source + run->source_n;
    }
    assert_int_equal(at, span->text.n);
}

/* The text in pieces of `step` bytes. */
static void take(
    struct told *t, const struct script_options *o, const char *text, size_t n, size_t step)
{
    struct script *script;
    struct script_span span;
    utter_error error = {0};
    const char *note;
    char more[MOST];
    struct script_options options = *o;
    *t = (struct told){.source = text};
    options.written = note_written;
    options.written_user = t;
    utter_status status = script_open(&script, &options, &error);
    for (size_t at = 0; at < n && status == UTTER_OK; at += step) {
        status = script_text(script, text + at, n - at < step ? n - at : step, &error);
    }
    status = status ? status : script_finish(script, &error);
    while (status == UTTER_OK && script_next(script, &span)) {
        tell_span(t, &span, text, n);
        tell(t, "\r", 1);
        script_span_fini(&span);
    }
    assert_true(status || script_is_done(script));
    while (script && status == UTTER_OK && (note = script_note(script))) {
        tell(t, more, (size_t)snprintf(more, sizeof more, "! %s\r", note));
    }
    if (status) {
        assert_int_equal(status, UTTER_E_ARGUMENT);
        tell(t, more, (size_t)snprintf(more, sizeof more, "? %s\r", error.text));
    }
    script_free(&script);
}

/* \n in a table is a line break. */
static size_t unescape(char *to, const char *text, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        bool newline = text[i] == '\\' && i + 1 < n && text[i + 1] == 'n';
        to[used++] = newline ? '\n' : text[i];
        i += newline;
    }
    to[used] = 0;
    return used;
}

/* ---- Numbers ---- */

static void check_number(const char *language, const char *written, size_t n, const char *said)
{
    const struct script_options options = {.language = language, .spell_out = true};
    struct script *script;
    struct script_span span = {0};
    struct told t;
    assert_int_equal(script_open(&script, &options, NULL), UTTER_OK);
    assert_int_equal(script_text(script, written, n, NULL), UTTER_OK);
    assert_int_equal(script_finish(script, NULL), UTTER_OK);
    assert_true(script_next(script, &span));
    tell_span(&(struct told){.n = 0}, &span, written, n);
    t = (struct told){.n = 0};
    tell(&t, span.text.at, span.text.n);
    if (strcmp(t.text, said) != 0) {
        fail_msg("%s: \"%.*s\" is \"%s\", not \"%s\"", language, (int)n, written, t.text, said);
    }
    script_span_fini(&span);
    script_free(&script);
}

/* Each language has `least` lines or more. */
static void check_numbers(const char *path, int least)
{
    size_t table_bytes;
    char *table = support_read_file(path, &table_bytes), language[8] = "", *rest = table;
    int n_language = 0, n_languages = 0;
    assert_non_null(table);
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *arrow = strstr(line, " => ");
        if (*line == '[') {
            assert_true(n_languages == 0 || n_language >= least);
            snprintf(language, sizeof language, "%.2s", line + 1);
            n_languages++;
            n_language = 0;
        } else if (arrow && *line != '#') {
            check_number(language, line, unescape(line, line, (size_t)(arrow - line)), arrow + 4);
            n_language++;
        }
    }
    assert_true(n_languages == 10 && n_language >= least);
    free(table);
}

static void numbers_are_said_as_their_language_does(void **state)
{
    (void)state;
    check_numbers("tests/script/numbers.txt", 25);
}

static void each_language_counts_and_orders(void **state)
{
    (void)state;
    check_numbers("tests/script/counting.txt", 140);
}

/* What lies behind a number is not looked at for its language. */
static void a_language_is_that_of_the_text(void **state)
{
    static const char *const behind[] = {"5", "5\xd0\x96", "5\xe3\x81\x82", "5\xed\x95\x9c"};
    (void)state;
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        assert_string_equal(spell_language("auto", behind[i], 1), "english");
        assert_string_equal(spell_language(NULL, behind[i], strlen(behind[i])), i == 0   ? "english"
                                                                                : i == 1 ? "russian"
                                                                                : i == 2 ? "japanese"
                                                                                         : "korean");
    }
}

/* ---- Markup ---- */

struct example {
    char name[200];
    struct script_options options;
    char source[4096], cast[1024], lexicon[1024], language[16], voice[16];
    size_t n;
    char wanted[MOST], written[4096]; /* written: empty where the case does not say it */
};

static void read_options(struct example *e, const char *line)
{
    static const char *const kinds[] = {"none", "auto", "tags", "ssml"};
    const char *found;
    for (int i = 0; (found = strstr(line, " markup=")) && i < 4; i++) {
        e->options.markup = strncmp(found + 8, kinds[i], 4) == 0 ? i : e->options.markup;
    }
    if ((found = strstr(line, " lang="))) {
        sscanf(found + 6, "%15s", e->language);
        e->options.language = e->language;
    }
    if ((found = strstr(line, " voice="))) {
        sscanf(found + 7, "%15s", e->voice);
        e->options.voice = e->voice;
    }
    e->options.spell_out = strstr(line, " spell") != NULL;
    snprintf(e->name, sizeof e->name, "%s", line);
}

static void check_example(const struct example *e)
{
    static const size_t steps[] = {MOST, 1, 7};
    struct told whole, pieces;
    struct script_options o = e->options;
    o.cast = e->cast[0] ? e->cast : NULL;
    o.lexicon = e->lexicon[0] ? e->lexicon : NULL;
    take(&whole, &o, e->source, e->n, steps[0]);
    for (char *at = whole.text; *at; at++) {
        *at = *at == '\r' ? '\n' : *at;
    }
    if (strcmp(whole.text, e->wanted) != 0) {
        fail_msg("%s:\n%s--- wanted:\n%s", e->name, whole.text, e->wanted);
    }
    for (size_t i = 1; i < sizeof steps / sizeof *steps; i++) {
        take(&pieces, &o, e->source, e->n, steps[i]);
        for (char *at = pieces.text; *at; at++) {
            *at = *at == '\r' ? '\n' : *at;
        }
        assert_string_equal(pieces.text, whole.text);
        assert_string_equal(pieces.written, whole.written);
    }
    if (e->written[0]) {
        assert_string_equal(whole.written, e->written);
    }
}

static void markup_says_how(void **state)
{
    enum { SOURCE, CAST, LEXICON, WANTED } part = WANTED;
    size_t table_bytes;
    char *table = support_read_file("tests/script/markup.txt", &table_bytes), *rest = table;
    struct example e = {.n = 0};
    int n_cases = 0;
    (void)state;
    assert_non_null(table);
    for (char *line; (line = strsep(&rest, "\n"));) {
        bool begins = strncmp(line, "== ", 3) == 0;
        if (begins || !rest) {
            if (n_cases > 0) {
                check_example(&e);
            }
            e = (struct example){.n = 0};
            read_options(&e, line + (begins ? 2 : 0));
            n_cases += begins;
            part = SOURCE;
        } else if (strcmp(line, "--") == 0) {
            part = WANTED;
        } else if (strcmp(line, "cast:") == 0 || strcmp(line, "lexicon:") == 0) {
            part = *line == 'c' ? CAST : LEXICON;
        } else if (part == WANTED && strncmp(line, "~ ", 2) == 0) {
            e.written[unescape(e.written, line + 2, strlen(line + 2))] = 0;
        } else if (part == SOURCE) {
            e.n = unescape(e.source, line, strlen(line));
        } else {
            char *to = part == CAST ? e.cast : part == LEXICON ? e.lexicon : e.wanted;
            strcat(strcat(to, line), "\n");
        }
    }
    assert_true(n_cases >= 70);
    free(table);
}

/* Counts the blanks that are told. A utter_written_fn. */
static void count_blanks(void *user, uint64_t at, uint64_t bytes, const char *text, size_t n)
{
    size_t *blanks = user;
    (void)at;
    (void)bytes;
    *blanks += n == 1 && *text == ' ';
}

/* A text without blanks is read in parts of 64 KiB. Where one ends no markup stands, so that no blank does; a pause
 * there is one like any other. */
static void parts_of_a_long_text_are_not_set_apart(void **state)
{
    enum { PART = 1 << 16, WORDS = 4 * PART };
    static const struct {
        const char *words, *then;
        size_t n, blanks; /* n: of words, as bytes */
    } all[] = {{"x", "", WORDS, 0}, {"\xd0\x96", "", WORDS, 0}, {"\xe4\xbd\xa0", "", WORDS, 0},
        {"x", "[pause:1s]x", PART, 1}, {"x", "[pause:1s],", PART, 0}};
    char *text = malloc(WORDS + 16);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t blanks = 0, n = 0, n_spans = 0;
        const struct script_options options = {
            .markup = UTTER_MARKUP_TAGS, .written = count_blanks, .written_user = &blanks};
        struct script *script;
        struct script_span span;
        while (n < all[i].n) {
            n += (size_t)sprintf(text + n, "%s", all[i].words);
        }
        n += (size_t)sprintf(text + n, "%s", all[i].then);
        assert_int_equal(script_open(&script, &options, NULL), UTTER_OK);
        assert_int_equal(script_text(script, text, n, NULL), UTTER_OK);
        assert_int_equal(script_finish(script, NULL), UTTER_OK);
        for (; script_next(script, &span); n_spans++) {
            script_span_fini(&span);
        }
        assert_true(n_spans > 1);
        assert_int_equal(blanks, all[i].blanks);
        script_free(&script);
    }
    free(text);
}

/* Depth, the length of lists of notes and of values have bounds. */
static void nesting_is_bounded(void **state)
{
    const struct script_options options = {.markup = UTTER_MARKUP_SSML};
    char text[2000] = "";
    struct told t;
    (void)state;
    for (int i = 0; i < 65; i++) {
        strcat(text, "<p>");
    }
    take(&t, &options, text, strlen(text), MOST);
    assert_string_equal(t.text, "? markup, line 1, column 193: elements lie more than 64 deep\r");
}

/* The spans of a document; how many there are, and the first of them with words. */
static size_t read_document(struct script_span *first, const char *text, size_t n, utter_status wanted)
{
    const struct script_options options = {
        .markup = UTTER_MARKUP_SSML, .lexicon = "term = word", .spell_out = true, .language = "en"};
    struct script *script;
    struct script_span span;
    size_t n_spans = 0;
    *first = (struct script_span){.pause_s = -1};
    assert_int_equal(script_open(&script, &options, NULL), UTTER_OK);
    utter_status status = script_text(script, text, n, NULL);
    status = status ? status : script_finish(script, NULL);
    assert_int_equal(status, wanted);
    for (; script_next(script, &span); n_spans++) {
        if (span.text.n > 0 && first->text.n == 0) {
            *first = span;
        } else {
            script_span_fini(&span);
        }
    }
    script_free(&script);
    return n_spans;
}

/* <speak>, a pattern `count` times, some of it with a number of its own, </speak>. */
static size_t write_document(char *text, const char *pattern, int count, const char *end)
{
    size_t n = (size_t)sprintf(text, "<speak>");
    for (int i = 0; i < count; i++) {
        n += (size_t)sprintf(text + n, pattern, i);
    }
    return n + (size_t)sprintf(text + n, "%s</speak>", end);
}

/* A value that is too long ends with a whole character; pauses add up to ten minutes; names are counted. */
static void what_is_kept_is_bounded(void **state)
{
    char *text = malloc(1 << 20);
    struct script_span span;
    bool bad;
    (void)state;
    assert_non_null(text);
    size_t n = (size_t)sprintf(text, "<speak><sub alias='");
    for (int i = 0; i < 600; i++) {
        n += (size_t)sprintf(text + n, "é");
    }
    n += (size_t)sprintf(text + n, "'>x</sub></speak>");
    assert_int_equal(read_document(&span, text, n, UTTER_OK), 1);
    assert_int_equal(span.text.n, 1022);
    assert_int_equal(utf8_valid(span.text.at, span.text.n, &bad), 1022);
    script_span_fini(&span);

    n = write_document(text, "<break time='60s'/>", 1000, "x");
    assert_int_equal(read_document(&span, text, n, UTTER_OK), 1);
    assert_true(span.pause_s > 599 && span.pause_s <= SCRIPT_MOST_PAUSE_S);
    script_span_fini(&span);

    n = write_document(text, "<lang xml:lang='l%d'>x</lang>", 2000, "");
    assert_int_equal(read_document(&span, text, n, UTTER_OK), 2000);
    script_span_fini(&span);
    n = write_document(text, "<lang xml:lang='l%d'>x</lang>", 2001, "");
    read_document(&span, text, n, UTTER_E_ARGUMENT);
    script_span_fini(&span);
    free(text);
}

/* Eight times the text takes eight times as long, not sixty-four times. */
static void hostile_text_takes_linear_time(void **state)
{
    enum { SHORT = 4000, TIMES = 8 };
    static const char *const patterns[] = {"(1)", "1-", "+1",
        "\xe4\xbd\xa0"
        "1",
        "a\n", "&#65;"};
    char *text = malloc(SHORT * TIMES * 8);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        clock_t took[2];
        for (int big = 0; big < 2; big++) {
            struct script_span span;
            size_t n = write_document(text, patterns[i], big ? SHORT * TIMES : SHORT, "");
            clock_t begin = clock();
            assert_int_equal(read_document(&span, text, n, UTTER_OK), 1);
            took[big] = clock() - begin;
            script_span_fini(&span);
        }
        if (took[1] > 3 * TIMES * took[0] + CLOCKS_PER_SEC / 20) {
            fail_msg("%s: %ld us and %ld us", patterns[i], (long)took[0], (long)took[1]);
        }
    }
    free(text);
}

/* A paragraph comes with the line that ends it, also where all of it is one letter that came before. */
static void a_paragraph_comes_when_it_ends(void **state)
{
    static const char *const texts[][2] = {{"A", "\n\nB"}, {"One", "\n\nB"}, {"One\n", "\nB"}};
    const struct script_options options = {.markup = UTTER_MARKUP_TAGS, .language = "en"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct script *script;
        struct script_span span;
        assert_int_equal(script_open(&script, &options, NULL), UTTER_OK);
        assert_int_equal(script_text(script, texts[i][0], strlen(texts[i][0]), NULL), UTTER_OK);
        assert_false(script_next(script, &span));
        assert_int_equal(script_text(script, texts[i][1], strlen(texts[i][1]), NULL), UTTER_OK);
        assert_true(script_next(script, &span));
        script_span_fini(&span);
        script_free(&script);
    }
}

/* Every allocation fails once: an error or the whole, nothing lost. Only a note may be missing. */
static void memory_may_run_out(void **state)
{
    static const char *const sources[] = {"<speak>At 3:30 <voice name='a'>SQL &amp; <break/>x</voice> "
                                          "<say-as interpret-as='date'>2024-05-03</say-as></speak>",
        "<speak>x<new/></speak>"};
    const struct script_options options = {.markup = UTTER_MARKUP_SSML,
        .lexicon = "[de]\nSQL = sequel\n",
        .cast = "A = b\n",
        .language = "de",
        .voice = "a",
        .spell_out = true};
    (void)state;
    for (int notes = 0; notes < 2; notes++) {
        SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
        {
            const char *source = sources[notes];
            struct script *script;
            struct script_span span;
            utter_error error = {0};
            utter_status status = script_open(&script, &options, &error);
            status = status ? status : script_text(script, source, strlen(source), &error);
            status = status ? status : script_finish(script, &error);
            assert_true(status == (support_failed() ? UTTER_E_MEMORY : UTTER_OK) ||
                        (notes && status == UTTER_OK && !script_note(script)));
            assert_int_equal(error.code, status);
            while (status == UTTER_OK && script_next(script, &span)) {
                script_span_fini(&span);
            }
            script_free(&script);
        }
    }
}

/* A mark of byte order is no part of the first term, and may be all that there is. */
static void a_lexicon_may_begin_with_a_byte_order(void **state)
{
    static const char *const lexicons[] = {
        "\xef\xbb\xbfxy = z", "\xef\xbb\xbf", "\xef\xbb = z", "x\xff = z"};
    static const char *const wanted[] = {
        "z{xy}\r", "xy\r", "? the lexicon is not UTF-8\r", "? the lexicon is not UTF-8\r"};
    struct told t;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const struct script_options options = {.lexicon = lexicons[i]};
        take(&t, &options, "xy", 2, MOST);
        assert_string_equal(t.text, wanted[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_said_as_their_language_does),
        cmocka_unit_test(each_language_counts_and_orders),
        cmocka_unit_test(a_language_is_that_of_the_text),
        cmocka_unit_test(markup_says_how),
        cmocka_unit_test(parts_of_a_long_text_are_not_set_apart),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(what_is_kept_is_bounded),
        cmocka_unit_test(hostile_text_takes_linear_time),
        cmocka_unit_test(a_paragraph_comes_when_it_ends),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(a_lexicon_may_begin_with_a_byte_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
