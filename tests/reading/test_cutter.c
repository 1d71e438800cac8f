/* SPDX-License-Identifier: Apache-2.0
 * The cutter at its bounds: lengths to the unit, what a piece tells of itself, and text that comes bit by bit. */
#include "reading/cut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/heap.h"
#include "tests/support.h"

static void give(struct cutter *c, const char *text)
{
    assert_int_equal(cutter_text(c, text, strlen(text), NULL), UTTER_OK);
}

/* `count` times the letter, behind what is there. */
static void letters(char *text, char letter, size_t count)
{
    size_t n = strlen(text);
    memset(text + n, letter, count);
    text[n + count] = 0;
}

/* The pieces of a text as one string, behind each its units and how it ends. */
static const char *pieces_of(const char *text, size_t most)
{
    static char all[8192];
    static const char *const ends[] = {"character", "word", "clause", "sentence", "paragraph"};
    struct cutter c = {.most = most};
    struct cut_piece p;
    size_t n = 0;
    give(&c, text);
    cutter_finish(&c);
    for (*all = 0; cutter_next(&c, &p); n = strlen(all)) {
        snprintf(
            all + n, sizeof all - n, "%.*s %zu %s|", (int)p.text_bytes, p.text, p.units, ends[p.end]);
    }
    assert_true(cutter_is_done(&c));
    cutter_fini(&c);
    return all;
}

/* Units of each piece and how it ends stand behind its words. */
static const struct {
    size_t most;
    const char *text, *pieces;
} units[] = {
    {10, "aaaa bbbb c", "aaaa bbbb c 11 paragraph|"},
    {10, "aaaa bbbb cc", "aaaa 5 word|bbbb cc 7 paragraph|"},
    {10, "aaaa bbbbbb", "aaaa bbbbbb 11 paragraph|"},
    {10, "aaaaaaaaaaaa", "aaaaaaaaaa 10 character|aa 2 paragraph|"},
    {10, "aaaaaaaaaaa", "aaaaaaaaaaa 11 paragraph|"},
    {20, "aaaaaaaaaaaaaaaaaaaaa b", "aaaaaaaaaaaaaaaaaaaa 20 character|a b 3 paragraph|"},
    {20, "aaaaaaaaaaaaaaaaaaaa bbbb", "aaaaaaaaaaaaaaaaaaaa 21 word|bbbb 4 paragraph|"},
    {20, "aaaa bbbb cccc dddd ､eeee ffff", "aaaa bbbb cccc dddd ､ 21 clause|eeee ffff 9 paragraph|"},
    {10, "aaaa. bbbb. cc", "aaaa. 6 word|bbbb. cc 8 paragraph|"},
    {20, "aaaa, bbbbbbbbbbb, cccccccc ddd", "aaaa, bbbbbbbbbbb, 19 clause|cccccccc ddd 12 paragraph|"},
    {20, "aaa, bbbbbbbbbb bbb cccccccc ddd",
        "aaa, 5 clause|bbbbbbbbbb bbb 15 word|cccccccc ddd 12 paragraph|"},
    {20, "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii",
        "aaaa bbbb cccc dddd 20 word|eeee ffff 10 word|gggg hhhh iiii 14 paragraph|"},
    {20, "aaaa bbbb cccc dddd eeee ffff", "aaaa bbbb cccc 15 word|dddd eeee ffff 14 paragraph|"},
    {60, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa. Bbbbbbbbbbbb. Cccccccccccccccccc.",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa. Bbbbbbbbbbbb. 53 sentence|Cccccccccccccccccc. 19 "
        "paragraph|"},
    {60, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa. Bbbbbbbbbbbb. Cccccccccccccccccc.",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa. 40 sentence|Bbbbbbbbbbbb. Cccccccccccccccccc. 33 "
        "paragraph|"},
    {60, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa. Bbbbbbbbbbbb. Cccccccccccccccccc.",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa. 41 sentence|Bbbbbbbbbbbb. Cccccccccccccccccc. 33 "
        "paragraph|"},
    {20, "aaaa bbb\n\nCccc. Dddd. Eeee ffff gggg",
        "aaaa bbb 9 paragraph|Cccc. Dddd. 12 sentence|Eeee ffff gggg 14 paragraph|"},
    {20, "Aaaa. Bbbb.\n\nCccc. Dddd. Eeee ffff gggg",
        "Aaaa. Bbbb. 12 paragraph|Cccc. Dddd. 12 sentence|Eeee ffff gggg 14 paragraph|"},
    {20, "Aaaa.\n\nCccc. Dddd. Eeee ffff gggg",
        "Aaaa. 6 paragraph|Cccc. Dddd. 12 sentence|Eeee ffff gggg 14 paragraph|"},
    {20, "Aaaa bbbb. Cc.\n\nDdd. Eee. Fff.\n\nGgg. Hhh. Iii. Jjj. Kkk",
        "Aaaa bbbb. Cc. 15 paragraph|Ddd. Eee. Fff. 15 paragraph|Ggg. Hhh. Iii. Jjj. 20 "
        "sentence|Kkk 3 paragraph|"},
    {20,
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81"
        "a\xcc\x81",
        "áááááááááá 20 character|áá 4 paragraph|"},
    {5, "a\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81",
        "á́́́ 5 character|́́́́ 4 paragraph|"},
    {7, "\U0001F1E9\U0001F1EA\U0001F1EB\U0001F1F7\U0001F1EC\U0001F1E7", "🇩🇪🇫🇷🇬🇧 6 paragraph|"},
    {10, "天天天天天", "天天天 9 character|天天 6 paragraph|"},
    {10, "天。天，天天。", "天。 6 sentence|天， 6 clause|天天。 9 paragraph|"},
    {12, "今日。\n明日、\n明後日。\n\n天",
        "今日。 10 paragraph|明日、 10 clause|明後日。 13 paragraph|天 3 paragraph|"},
    {10, "1234", "12 8 character|34 8 paragraph|"},
    {10, "%%", "% 6 character|% 6 paragraph|"},
    {30, "Aaaa. ” Bbbb. “ Cccc. ) Dddd. ' Eeee",
        "Aaaa. ” Bbbb. “ Cccc. ) Dddd. 30 sentence|' Eeee 6 paragraph|"},
    {8, "Aa ; Bb ! Cc : Dd ? Ee . Ff",
        "Aa ; 5 clause|Bb ! 5 sentence|Cc : 5 clause|Dd ? 5 sentence|Ee . Ff 7 paragraph|"},
    {10, "Mr! Aaaa Mr... Bbb Mr.. Ccc Mr.) Ddd",
        "Mr! 4 sentence|Aaaa Mr... 11 sentence|Bbb Mr.. 9 sentence|Ccc 4 word|Mr.) Ddd 8 "
        "paragraph|"},
    {10, "aaa。!bbb！？\"ccc", "aaa。! 7 sentence|bbb！？\" 10 sentence|ccc 3 paragraph|"},
    {12,
        "Aaaaa bbbb\n- ccccc\n-ddddd\n* eee\n> fff\n### "
        "ggg\n#hhh\n\xe2\x80\xa2iii\n\xe2\x80\x93jjj",
        "Aaaaa bbbb 11 paragraph|- ccccc 8 sentence|-ddddd 7 paragraph|* eee 6 paragraph|> fff 6 "
        "paragraph|## 12 character|# ggg 11 sentence|#hhh 10 paragraph|•iii –jjj 9 paragraph|"},
    {12,
        "aaaa\xc2\xa0"
        "bbbb\xe2\x80\xa8"
        "cccc\xe2\x80\xa9"
        "Dddd eeee",
        "aaaa bbbb 10 word|cccc 5 sentence|Dddd eeee 9 paragraph|"},
    {10, "aa\r\nbb\r\n\r\ncc\n\rdd ee", "aa bb 6 paragraph|cc 3 paragraph|dd ee 5 paragraph|"},
    {4, "aaaa ! bbbb", "aaaa 4 character|! 2 clause|bbbb 4 paragraph|"},
    {4, "aaaa ? bbbb", "aaaa 4 character|? 2 clause|bbbb 4 paragraph|"},
    {4, "aaaa ; bbbb", "aaaa 4 character|; 2 clause|bbbb 4 paragraph|"},
    {4, "aaaa : bbbb", "aaaa 4 character|: 2 clause|bbbb 4 paragraph|"},
    {4, "aaaa » bbbb", "aaaa 4 character|» 2 word|bbbb 4 paragraph|"},
    {4, "aaaa “ bbbb", "aaaa 5 word|“ 2 word|bbbb 4 paragraph|"},
    {4, "aaaa ” bbbb", "aaaa 5 word|” 2 word|bbbb 4 paragraph|"},
    {4, "aaaa \" bbbb", "aaaa 5 word|\" 2 word|bbbb 4 paragraph|"},
    {4, "aaaa ' bbbb", "aaaa 5 word|' 2 word|bbbb 4 paragraph|"},
    {2, "天天", "天 3 character|天 3 paragraph|"},
    {20, "aaaa bbbb cccc dddd eeee ffff. Gggg hhhh iiii jjjj",
        "aaaa bbbb cccc 15 word|dddd eeee ffff. 16 sentence|Gggg hhhh iiii jjjj 19 paragraph|"},
    {10, "aaaa bbbbb\n\ncc", "aaaa bbbbb 11 paragraph|cc 2 paragraph|"},
    {10, "aaaa bbbbbb\n\ncc", "aaaa 5 word|bbbbbb 7 paragraph|cc 2 paragraph|"},
    {20, "aaaa bbbb ccccccccc ddddddddd", "aaaa bbbb ccccccccc 20 word|ddddddddd 9 paragraph|"},
};

static void texts_are_cut_to_the_unit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const char *pieces = pieces_of(units[i].text, units[i].most);
        if (strcmp(pieces, units[i].pieces) != 0) {
            fail_msg("%s: %s", units[i].text, pieces);
        }
    }
}

/* A line of fewer than 36 units ends a sentence where the next one begins with a large letter, one of more than 120
 * ends a paragraph whatever follows. Blanks count, and each line counts anew. */
static void lines_end_by_their_length(void **state)
{
    static const struct {
        size_t one, other, cut; /* cut: the place; 0: none */
        char next;
    } all[] = {{35, 0, 36, 'Y'}, {36, 0, 0, 'Y'}, {35, 0, 0, 'y'}, {17, 17, 36, 'Y'}, {18, 17, 0, 'Y'},
        {120, 0, 0, 'y'}, {121, 0, 122, 'y'}, {60, 59, 0, 'y'}, {60, 60, 122, 'y'}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int before = 0; before < 2; before++) { /* a line of its own in front */
            char text[512] = "", *line = text;
            if (before) {
                letters(text, 'z', 50);
                strcat(text, "\n");
                line = text + strlen(text);
            }
            letters(text, 'x', all[i].one);
            if (all[i].other) {
                strcat(text, " ");
                letters(text, 'x', all[i].other);
            }
            strcat(text, "\n");
            letters(text, all[i].next, 1);
            size_t n = strlen(text);
            assert_int_equal(
                cut_sentence(text, n, true), all[i].cut ? (size_t)(line - text) + all[i].cut : n);
        }
    }
    static const char *const items[] = {"\xe2\x80\xa2", "- ", "\xe2\x80\x94"};
    for (size_t i = 0; i < 3; i++) { /* also where nothing stands behind an item's sign */
        char text[128] = "";
        letters(text, 'x', 50);
        strcat(strcat(text, "\n"), items[i]);
        assert_int_equal(cut_sentence(text, strlen(text), true), 51);
    }
    for (size_t length = 35; length < 37; length++) { /* also behind a line of East Asia */
        char text[128] = "天，\n";
        letters(text, 'x', length);
        strcat(text, "\nY");
        size_t n = strlen(text);
        assert_int_equal(cut_sentence(text, n, true), length == 35 ? n - 1 : n);
    }
}

static void an_end_is_known_by_its_mark_and_breaks(void **state)
{
    static const struct {
        const char *text;
        enum cut_end end;
    } all[] = {{"", CUT_WORD}, {"word", CUT_WORD}, {"word ", CUT_WORD}, {"word,", CUT_CLAUSE},
        {"word, ", CUT_CLAUSE}, {"word.", CUT_SENTENCE}, {"word!\"", CUT_SENTENCE},
        {"word.) ", CUT_SENTENCE}, {"word\n", CUT_SENTENCE}, {"word,\n", CUT_SENTENCE},
        {"word\r\n", CUT_SENTENCE}, {"word\n\n", CUT_PARAGRAPH}, {"word.\r\n \r\n", CUT_PARAGRAPH},
        {"天。", CUT_SENTENCE}, {"天，", CUT_CLAUSE}, {"天", CUT_WORD}, {"\n", CUT_SENTENCE},
        {"\n\n", CUT_PARAGRAPH}, {". word", CUT_WORD}, {"\n\nword", CUT_WORD}, {".", CUT_SENTENCE},
        {",", CUT_CLAUSE}, {"!\"", CUT_SENTENCE}, {"\"", CUT_WORD}, {"。", CUT_SENTENCE}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (cut_end_of(all[i].text, strlen(all[i].text)) != all[i].end) {
            fail_msg("\"%s\"", all[i].text);
        }
    }
}

static void a_sentence_may_go_on(void **state)
{
    static const struct {
        const char *text;
        size_t open, ended;
    } all[] = {{"", 0, 0}, {"One", 0, 3}, {"One. ", 0, 5}, {"One. T", 5, 5}, {"One. z", 0, 6},
        {"One. 1", 0, 5}, {"One. 1234", 5, 5}, {"One. [", 0, 5}, {"One. A", 5, 5}, {"One. Z", 5, 5},
        {"One. @", 0, 5}, {"One? a", 0, 6}, {"天。", 0, 6}, {"天。天", 0, 6}, {"天。天天", 6, 6},
        {"天。a", 6, 6}, {"「天。」と", 0, 15}, {"「天。」や", 0, 12}, {"「天。」やや", 12, 12},
        {"天，。天天", 9, 9}, {"天。とても", 6, 6}, {"３。天天天", 6, 6}, {"天．天天", 6, 6},
        {"３．天天", 0, 12}, {"Bbbb. “ Cccc", 6, 6}, {"Bbbb. ” Cccc", 6, 6}, {"Bbbb. ' Cccc", 6, 6},
        {"Bbbb. » Cccc", 9, 9}, {"Bbbb. ) Cccc", 8, 8}, {"！", 0, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n = strlen(all[i].text), open = cut_sentence(all[i].text, n, false),
               ended = cut_sentence(all[i].text, n, true);
        if (open != all[i].open || ended != all[i].ended) {
            fail_msg("%s: %zu and %zu", all[i].text, open, ended);
        }
    }
}

/* A text of one piece is its own source; of others the source is what stood there before white space was folded. */
static void a_piece_knows_its_source(void **state)
{
    static const char text[] = " One  two three four five\nsix seven eight. \n And  nine ";
    struct cutter c = {.most = 45};
    struct cut_piece p;
    (void)state;
    give(&c, text);
    assert_true(cutter_next(&c, &p));
    assert_int_equal(p.at, 1);
    assert_int_equal(p.bytes, 41);
    assert_int_equal(p.text_at, 1);
    assert_int_equal(p.source_bytes, 41);
    assert_memory_equal(p.source, text + 1, 41);
    assert_int_equal(p.text_bytes, 40);
    assert_memory_equal(p.text, "One two three four five six seven eight.", 40);
    assert_true(p.speaks && !p.last && !p.no_memory);
    assert_false(cutter_next(&c, &p));
    cutter_finish(&c);
    assert_true(cutter_next(&c, &p));
    assert_int_equal(p.at, 45);
    assert_int_equal(p.bytes, 9);
    assert_int_equal(p.text_at, 45);
    assert_int_equal(p.source_bytes, 9);
    assert_memory_equal(p.source, "And  nine", 9);
    assert_int_equal(p.units, 9);
    assert_true(p.last);
    assert_false(cutter_next(&c, &p));
    cutter_fini(&c);
    give(&c, text);
    c.most = 100;
    cutter_finish(&c);
    assert_true(cutter_next(&c, &p));
    assert_null(p.source);
    assert_int_equal(p.source_bytes, 0);
    assert_int_equal(p.text_at, 0);
    assert_int_equal(p.at, 1);
    assert_int_equal(p.text_bytes, sizeof text - 1);
    cutter_fini(&c);
}

/* Of a longer text: white space in front is no part of it, and nothing else is a piece. */
static void white_space_alone_is_no_piece(void **state)
{
    struct cutter c = {.most = 40, .part = true};
    struct cut_piece p;
    (void)state;
    give(&c, "  \xc2\xa0 a  b ");
    cutter_finish(&c);
    assert_true(cutter_next(&c, &p));
    assert_int_equal(p.at, 5);
    assert_int_equal(p.bytes, 4);
    assert_int_equal(p.units, 4);
    assert_int_equal(p.text_bytes, 3);
    assert_non_null(p.source);
    cutter_fini(&c);
    assert_false(c.part);
    c.part = true;
    give(&c, " \n ");
    cutter_finish(&c);
    assert_false(cutter_next(&c, &p));
    assert_true(cutter_is_done(&c));
    cutter_fini(&c);
    give(&c, "This is the first sentence of letters. And more of it");
    assert_true(cutter_next(&c, &p));
    give(&c, "! ");
    cutter_finish(&c);
    assert_true(cutter_next(&c, &p) && p.last);
    give(&c, " \n");
    assert_false(cutter_next(&c, &p));
    assert_true(cutter_is_done(&c));
    cutter_fini(&c);
}

/* What is known of a character that has not come whole is no reason to cut. */
static void a_character_that_is_not_whole_waits(void **state)
{
    static const char *const texts[] = {"One two three four five. Six seven nin\xc3\xa9",
        "One two three four five. Six seven nin\xe2\x80\xa6",
        "One two three four five. Six seven nin\xf0\x9d\x90\x80"};
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        struct cutter c = {.most = 38};
        struct cut_piece p;
        for (size_t i = 0; i < strlen(texts[k]); i++) {
            assert_int_equal(cutter_text(&c, texts[k] + i, 1, NULL), UTTER_OK);
            assert_false(cutter_next(&c, &p));
        }
        cutter_finish(&c);
        assert_true(cutter_next(&c, &p));
        assert_int_equal(p.text_bytes, strlen(texts[k]));
        assert_int_equal(p.units, 39);
        cutter_fini(&c);
    }
}

/* A sentence that goes on is waited for up to twice the length of a piece. */
static void a_long_sentence_is_cut_before_it_ends(void **state)
{
    struct cutter c = {.most = 20};
    struct cut_piece p;
    (void)state;
    give(&c, "aaaa bbbb cccc dddd eeee ffff gggg hhhh ");
    assert_false(cutter_next(&c, &p));
    give(&c, "iiii ");
    assert_true(cutter_next(&c, &p));
    assert_int_equal(p.units, 20);
    assert_int_equal(p.end, CUT_WORD);
    cutter_fini(&c);
}

/* A long text that gave no piece is looked at again when a quarter of it has come, when a piece has left, and at its
 * end. */
static void a_long_text_is_looked_at_again(void **state)
{
    static char text[40000];
    struct cutter c = {.most = 9000};
    struct cut_piece p;
    (void)state;
    letters(text, 'x', 5000);
    strcat(text, ". ");
    letters(text, 'Y', 3999);
    give(&c, text);
    assert_false(cutter_next(&c, &p));
    *text = 0;
    letters(text, 'Y', 2249);
    give(&c, text);
    assert_false(cutter_next(&c, &p));
    give(&c, "Y");
    assert_true(cutter_next(&c, &p));
    assert_int_equal(p.bytes, 5001);
    give(&c, ". ");
    give(&c, text);
    give(&c, "YYYY"); /* 8,508 bytes, in which another sentence has ended */
    assert_false(cutter_next(&c, &p));
    give(&c, text);
    assert_true(cutter_next(&c, &p)); /* a quarter more */
    cutter_finish(&c);
    assert_true(cutter_next(&c, &p) && p.last);
    cutter_fini(&c);

    *text = 0;
    letters(text, 'x', 8500);
    give(&c, text);
    assert_false(cutter_next(&c, &p));
    cutter_finish(&c);
    assert_true(cutter_next(&c, &p));
    assert_int_equal(p.bytes, 8500);
    cutter_fini(&c);
}

/* Up to 8,192 bytes are looked at whenever more has come. */
static void a_shorter_text_is_looked_at_each_time(void **state)
{
    static char text[9000];
    struct cutter c = {.most = 8100};
    struct cut_piece p;
    (void)state;
    *text = 0;
    letters(text, 'x', 50);
    strcat(text, ". ");
    letters(text, 'Y', 7948);
    give(&c, text);
    assert_false(cutter_next(&c, &p));
    *text = 0;
    letters(text, 'Y', 192);
    give(&c, text);
    assert_true(cutter_next(&c, &p));
    assert_int_equal(p.bytes, 51);
    cutter_fini(&c);
}

/* What has gone out stays until it is more than half of what there is. */
static void what_has_gone_out_is_dropped(void **state)
{
    static const struct {
        const char *text;
        size_t begin, n;
    } all[] = {{"A first piece of as many letters as that. And it goes on like this, to here. And on ",
                   42, 85},
        {"A first piece of as many letters as that. And it goes on like this, to here. And on", 0, 42}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct cutter c = {.most = 60};
        struct cut_piece p;
        give(&c, all[i].text);
        assert_true(cutter_next(&c, &p));
        assert_int_equal(c.begin, 42);
        give(&c, "!");
        assert_int_equal(c.begin, all[i].begin);
        assert_int_equal(c.text.n, all[i].n);
        cutter_fini(&c);
    }
}

/* White space and stars in front of all words are pieces that nobody speaks. */
static void stars_in_front_are_not_spoken(void **state)
{
    static const char text[] = " \n  * * *\n\nAnd this is the second part of the book";
    struct cutter c = {.most = 30};
    struct cut_piece p;
    (void)state;
    give(&c, text);
    for (size_t bytes = 0; bytes < 6; bytes += 5) { /* the white space, the stars */
        assert_true(cutter_next(&c, &p));
        assert_int_equal(p.at, 4);
        assert_int_equal(p.bytes, bytes);
        assert_false(p.speaks);
    }
    assert_int_equal(cutter_certain(&c), 0);
    cutter_fini(&c);
}

/* It can be used again behind cutter_fini, which keeps the length alone; a piece without memory for its source says
 * so. */
static void nothing_stays_of_a_text(void **state)
{
    struct cutter c = {.most = 12, .part = true};
    struct cut_piece p;
    const struct cutter plain = {.most = 12};
    (void)state;
    /* The heap has to have in store what it keeps of freed blocks. */
    for (int round = 0; round < 16; round++) {
        c.part = true;
        size_t before = heap_used();
        give(&c, "One two. Three four.");
        cutter_finish(&c);
        support_fail_malloc_at(1);
        assert_true(cutter_next(&c, &p));
        assert_true(support_failed() && p.no_memory);
        support_fail_off();
        assert_true(cutter_next(&c, &p));
        assert_true(!p.no_memory && p.last);
        cutter_fini(&c);
        assert_memory_equal(&c, &plain, sizeof c);
        assert_true(round < 15 || heap_used() == before);
    }
    assert_false(cutter_next(&c, &p));
    assert_int_equal(cutter_certain(&c), 0);
    assert_false(cutter_is_done(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_cut_to_the_unit),
        cmocka_unit_test(lines_end_by_their_length),
        cmocka_unit_test(an_end_is_known_by_its_mark_and_breaks),
        cmocka_unit_test(a_sentence_may_go_on), cmocka_unit_test(a_piece_knows_its_source),
        cmocka_unit_test(white_space_alone_is_no_piece),
        cmocka_unit_test(a_character_that_is_not_whole_waits),
        cmocka_unit_test(a_long_sentence_is_cut_before_it_ends),
        cmocka_unit_test(a_long_text_is_looked_at_again),
        cmocka_unit_test(a_shorter_text_is_looked_at_each_time),
        cmocka_unit_test(what_has_gone_out_is_dropped), cmocka_unit_test(stars_in_front_are_not_spoken),
        cmocka_unit_test(nothing_stays_of_a_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
