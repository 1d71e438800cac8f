/* SPDX-License-Identifier: Apache-2.0
 * Where texts are cut: cases for each language as a table, and what must hold for any text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reading/cut.h"
#include "reading/marks.h"
#include "tests/support.h"

enum { MOST_PIECES = 600, TEXT = 1 << 16 };

struct cuts {
    size_t n;
    struct {
        size_t at, bytes, units;
        enum cut_end end;
        bool speaks, last;
        char text[1024];
    } of[MOST_PIECES];
};

static void take(struct cutter *c, struct cuts *cuts)
{
    struct cut_piece p;
    while (cutter_next(c, &p)) {
        assert_true(cuts->n < MOST_PIECES);
        assert_true(p.text_bytes < sizeof cuts->of[0].text);
        cuts->of[cuts->n].at = p.at;
        cuts->of[cuts->n].bytes = p.bytes;
        cuts->of[cuts->n].units = p.units;
        cuts->of[cuts->n].end = p.end;
        cuts->of[cuts->n].speaks = p.speaks;
        cuts->of[cuts->n].last = p.last;
        memcpy(cuts->of[cuts->n].text, p.text, p.text_bytes);
        cuts->of[cuts->n++].text[p.text_bytes] = 0;
    }
}

/* The text comes in pieces of `step` bytes; what was certain of the first piece is what it begins with. The caller
 * frees the result. */
static struct cuts *cut(const char *text, size_t most, size_t step)
{
    struct cutter c = {.most = most};
    struct cuts *cuts = calloc(1, sizeof *cuts);
    size_t n = strlen(text), certain = 0;
    assert_non_null(cuts);
    for (size_t at = 0; at < n; at += step) {
        assert_int_equal(cutter_text(&c, text + at, n - at < step ? n - at : step, NULL), UTTER_OK);
        size_t now = cutter_certain(&c);
        assert_true(now >= certain || now == 0);
        certain = now > certain ? now : certain;
        take(&c, cuts);
        assert_true(cuts->n == 0 || cutter_certain(&c) == 0);
    }
    cutter_finish(&c);
    take(&c, cuts);
    assert_true(certain == 0 || (cuts->of[0].speaks && strlen(cuts->of[0].text) >= certain));
    assert_memory_equal(cuts->of[0].text, text, certain);
    assert_true(cutter_is_done(&c));
    cutter_fini(&c);
    return cuts;
}

/* Behind `|` a new sentence begins. */
static const struct {
    const char *name, *text;
} sentences[] = {
    {"English", "The train left the old station at noon. |Nobody had told the people who were waiting! "
                "|Did it come back?"},
    {"titles",
        "I met Dr. Smith and Mrs. Jones of St. Mary's yesterday evening. |They were on their way."},
    {"initials", "It was J. R. R. Tolkien who wrote of this long ago. |We read it as children do."},
    {"e.g.", "Bring something warm to wear, e.g. a coat, i.e. what you have at hand. |It is cold."},
    {"etc. within", "Apples, pears, etc. were on the table of the old kitchen. |We ate all of them."},
    {"etc. at the end", "On the table there were apples, pears, plums, etc. |We ate all of them."},
    {"decimals", "It takes 3.5 litres, costs 1,299.99 dollars and runs version 2.0.1 of it. |Good."},
    {"No. 5", "She lives at No. 5 in the street behind the church, see fig. 3 on p. 112. |Go there."},
    {"no.", "He was asked whether he would come along, and he said no. |Then he went."},
    {"quotes",
        "\"Will you come with me to the harbour tonight?\" she asked. |\"I will not.\" |He left."},
    {"closing quotes",
        "He said: \"I shall go there all alone tomorrow.\" |(And so he did, in the end.) |Good."},
    {"ellipsis", "And then there was ... nothing but the sound of rain... |Nobody spoke a word."},
    {"years", "The old bridge over the river was built in 1984. |Then came the flood."},
    {"an address", "Look at www.example.com or write to a.b@example.com about it all. |Thank you."},
    {"a time", "The doors of the museum open at 9 a.m. and they close at 5 p.m. sharp. |Come early."},
    {"U.S.", "The U.S. Army and the U.N. agreed on it after a long evening. |So they went."},
    {"shouting", "What?! |That cannot be true, nobody would ever do such a thing!!! |Really."},
    {"wrapped lines", "The text of this letter was wrapped by the program that\nsent it. |Nobody wants "
                      "a pause there."},
    {"verse", "Tyger, Tyger, burning bright\n|In the forests of the night\n|What immortal hand"},
    {"title", "Chapter One\n\n|It was a dark and stormy night, and the rain fell in torrents."},
    {"list",
        "What we need from the shop this morning, please:\n|- a loaf of bread\n|- two litres of milk"},
    {"German", "Am 3. Mai traf sich Hr. Weber z. B. mit Dr. Klein u. a. in der Stadt. |Es regnete bzw. "
               "schneite."},
    {"German quotes",
        "„Kommst du morgen Abend mit uns ins Theater?“, fragte sie. |„Nein, ich bin müde.“ |Er ging."},
    {"German ordinal",
        "Das war im 19. Jahrhundert auf dem Land noch überall so üblich. |Heute nicht mehr."},
    {"French", "M. Dupont et Mme. Durand sont arrivés hier soir à la maison ! |Pourquoi pas ? |Voilà."},
    {"French quotes", "Il répondit : « Je ne viendrai pas avec vous ce soir. » |Puis il sortit."},
    {"Spanish", "El Sr. García y la Sra. López viven en la Av. Central de aquí. |¿Dónde está? |¡Aquí!"},
    {"Portuguese", "O Sr. Silva e a Dra. Costa chegaram ontem à noite de comboio. |Está tudo bem?"},
    {"Italian", "Il sig. Rossi e la dott.ssa Bianchi sono arrivati ieri sera tardi. |Che cosa vuole?"},
    {"Russian", "В 1812 г. это было так, и т. д. и т. п., как пишет А. С. Пушкин об этом. |Он прав."},
    {"Chinese", "今天的天气非常好，我们一起去公园散步吧。|你觉得怎么样？|好极了！|走吧。"},
    {"Chinese quotes", "他笑着对我说：“明天早上我们一起去看电影吧。”|她点了点头。"},
    {"Chinese number", "这个东西的价格一共是３．５元，不是很贵的。|我买了。"},
    {"Japanese", "今日はとてもいい天気ですね。|公園まで一緒に散歩しませんか？|はい、行きましょう！"},
    {"Japanese quotes", "彼は「明日の朝早くに出かけるつもりだ。」と言いました。|それから帰りました。"},
    {"Korean", "오늘은 날씨가 정말 좋네요. |공원에 같이 산책하러 갈까요? |네, 좋아요!"},
};

/* The sentences of the text are those that the bars in `marked` ask for. */
static void check_case(const char *name, const char *marked)
{
    char text[1024];
    size_t n = 0;
    for (const char *at = marked; *at; at++) {
        text[n] = *at;
        n += *at != '|';
    }
    for (size_t at = 0, bar = 0, length; at < n; at += length) {
        text[n] = 0;
        length = cut_sentence(text + at, n - at, true);
        size_t wanted = strcspn(marked + bar, "|");
        if (length != wanted) {
            fail_msg("%s: cut in front of \"%s\"", name, text + at + length);
        }
        bar += wanted + 1;
    }
}

static void sentences_of_all_languages(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        check_case(sentences[i].name, sentences[i].text);
    }
}

static void a_short_text_stays_as_it_is(void **state)
{
    static const char *const texts[] = {"Hello there.", "\n\n One.  Two.\n\nThree? \n", " ", "3.14",
        "你好。再见。", "A line\nand another\n\nand a paragraph."};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t step = 1; step < 9; step += 3) {
            struct cuts *cuts = cut(texts[i], 180, step);
            assert_int_equal(cuts->n, 1);
            assert_string_equal(cuts->of[0].text, texts[i]);
            assert_true(cuts->of[0].last);
            free(cuts);
        }
    }
    struct cuts *none = cut("", 180, 1);
    assert_int_equal(none->n, 0);
    free(none);
}

static void the_first_piece_is_a_sentence(void **state)
{
    (void)state;
    struct cuts *cuts =
        cut("Yes. That is what he said to me on that day. And then he went home. And he never "
            "came back, as far as I know. So much of this.",
            100, 1000);
    assert_string_equal(cuts->of[0].text, "Yes. That is what he said to me on that day.");
    assert_string_equal(cuts->of[1].text,
        "And then he went home. And he never came back, as far as I know. So much of this.");
    assert_int_equal(cuts->n, 2);
    assert_true(cuts->of[1].last && !cuts->of[0].last);
    free(cuts);
}

static void long_sentences_fall_apart_at_clauses(void **state)
{
    (void)state;
    struct cuts *cuts =
        cut("When the evening came and the lamps were lit along the river, the people of the town went "
            "down to the water to see the ships come in.",
            100, 1000);
    assert_int_equal(cuts->n, 2);
    assert_string_equal(
        cuts->of[0].text, "When the evening came and the lamps were lit along the river,");
    assert_int_equal(cuts->of[0].end, CUT_CLAUSE);
    assert_int_equal(cuts->of[1].end, CUT_PARAGRAPH);
    free(cuts);
    cuts = cut("one two three four five six seven eight nine ten eleven twelve thirteen", 40, 1000);
    assert_int_equal(cuts->n, 2);
    assert_int_equal(cuts->of[0].end, CUT_WORD);
    assert_string_equal(cuts->of[0].text, "one two three four five six seven");
    free(cuts);
    cuts = cut("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 20, 1000);
    assert_int_equal(cuts->of[0].end, CUT_CHARACTER);
    assert_int_equal(cuts->of[0].bytes, 20);
    free(cuts);
}

/* One line break is none, two are a paragraph. */
static void paragraphs_are_apart(void **state)
{
    static const char *const breaks[] = {" ", "\n", "\r\n", " \n ", "\n\n", "\n \n", "\r\n\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        char text[200];
        snprintf(
            text, sizeof text, "This is the first sentence of it.%sThis is the second one.", breaks[i]);
        struct cuts *cuts = cut(text, 40, 1000);
        assert_int_equal(cuts->n, 2);
        assert_int_equal(cuts->of[0].end, i < 4 ? CUT_SENTENCE : CUT_PARAGRAPH);
        assert_string_equal(cuts->of[0].text, "This is the first sentence of it.");
        assert_string_equal(cuts->of[1].text, "This is the second one.");
        free(cuts);
        snprintf(
            text, sizeof text, "When the lamps were lit on the river,%sthe people came.", breaks[i]);
        cuts = cut(text, 40, 1000);
        assert_int_equal(cuts->n, 2);
        assert_int_equal(cuts->of[0].end, i < 4 ? CUT_CLAUSE : CUT_PARAGRAPH);
        free(cuts);
    }
}

static void white_space_is_folded(void **state)
{
    (void)state;
    struct cuts *cuts = cut("  This is the first sentence\nof the letter,\r\nwrapped.   \n\n\nAnd  "
                            "this \t is the second one "
                            "of   it, which is not short either.  \n",
        60, 1000);
    assert_string_equal(cuts->of[0].text, "This is the first sentence of the letter, wrapped.");
    assert_int_equal(cuts->of[0].at, 2);
    assert_int_equal(cuts->of[0].end, CUT_PARAGRAPH);
    assert_string_equal(
        cuts->of[1].text, "And this is the second one of it, which is not short either.");
    free(cuts);
    cuts = cut("今天的天气非常好，我们\n一起去公园散步吧。你觉得怎么样？好极了！走吧。", 70, 1000);
    assert_string_equal(cuts->of[0].text, "今天的天气非常好，我们一起去公园散步吧。");
    free(cuts);
}

static void stars_are_not_spoken(void **state)
{
    (void)state;
    struct cuts *cuts = cut(
        "This is the end of the first part of it.\n\n* * *\n\nAnd this is the second part of the book.",
        60, 7);
    assert_int_equal(cuts->n, 3);
    assert_true(cuts->of[0].speaks && !cuts->of[1].speaks && cuts->of[2].speaks);
    free(cuts);
}

/* Of texts made of what matters to the cutter: whatever the text and however it comes, the pieces are the same, nothing
 * but white space is between them, and none is too long. */
static void any_text_in_any_pieces(void **state)
{
    static const char *const bits[] = {" ", " ", " ", "\n", "\n\n", ". ", "! ", ", ", "word", "Another",
        "Mr", ".", "3", "。", "，", "」", "と", "天", "\"", "»", " ! ", "— ", "- ", "\xcc\x81", "\r\n",
        "한국", "…", "\xc2\xa0", "long sentence"};
    unsigned seed = 1;
    (void)state;
    for (int round = 0; round < (SUPPORT_SANITIZED ? 300 : 3000); round++) {
        char text[2048] = "";
        for (int i = 0; i < 20 + round % 80; i++) {
            seed = seed * 1664525u + 1013904223u;
            strcat(text, bits[(seed >> 16) % (sizeof bits / sizeof *bits)]);
        }
        struct cuts *whole = cut(text, 40, sizeof text), *again = cut(text, 40, 1 + (seed >> 24) % 7);
        assert_int_equal(whole->n, again->n);
        size_t at = 0;
        uint32_t code;
        for (size_t i = 0; i < whole->n; i++) {
            assert_int_equal(whole->of[i].at, again->of[i].at);
            assert_int_equal(whole->of[i].bytes, again->of[i].bytes);
            assert_int_equal(whole->of[i].end, again->of[i].end);
            assert_string_equal(whole->of[i].text, again->of[i].text);
            assert_true(whole->of[i].units <= 42);
            while (at < whole->of[i].at) {
                at += marks_get(text + at, strlen(text + at), &code);
                assert_true(marks_is_white(code));
            }
            at += whole->of[i].bytes;
        }
        for (; text[at]; at += marks_get(text + at, strlen(text + at), &code)) {
            marks_get(text + at, strlen(text + at), &code);
            assert_true(marks_is_white(code));
        }
        free(whole);
        free(again);
    }
}

/* The first words, up to where the piece may end, or a blank that may not stay. */
static void first_words_are_certain(void **state)
{
    static const struct {
        const char *text;
        size_t certain;
    } cases[] = {{"Hel", 0}, {"Hello t", 6}, {"Hello 3", 0}, {"Hello there, my frie", 16},
        {"Hello.  And", 6}, {"Hello.  And then", 6}, {"Hello. And then", 6},
        {"Hello\nthere my friend", 5}, {" Hello there", 0}, {"... * well", 0},
        {"One two three four five six seven eight nine ten", 39}, {"你好，我们", 9},
        {"你好， 我们去", 9}, {"你好 and more words", 16}, {"天 天 and", 3}, {"a  天 b c", 1},
        {"天a b", 5}, {"Bbbb. “ Cccc dddd", 5}, {"Bbbb. » Cccc dddd", 8},
        {"One two three four five six sevenx there", 35},
        {"One two three four five six seven eig there", 38},
        {"One two three four five six seven eigh there", 39},
        {"One two three four five six seven eight there", 39}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cutter c = {.most = 160};
        assert_int_equal(cutter_text(&c, cases[i].text, strlen(cases[i].text), NULL), UTTER_OK);
        if (cutter_certain(&c) != cases[i].certain) {
            fail_msg("%s: %zu", cases[i].text, cutter_certain(&c));
        }
        cutter_fini(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_of_all_languages),
        cmocka_unit_test(a_short_text_stays_as_it_is),
        cmocka_unit_test(the_first_piece_is_a_sentence),
        cmocka_unit_test(long_sentences_fall_apart_at_clauses),
        cmocka_unit_test(paragraphs_are_apart),
        cmocka_unit_test(white_space_is_folded),
        cmocka_unit_test(stars_are_not_spoken),
        cmocka_unit_test(first_words_are_certain),
        cmocka_unit_test(any_text_in_any_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
