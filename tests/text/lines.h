/* SPDX-License-Identifier: Apache-2.0
 * Lines of text for comparisons with the official tokenizer: line i is the same everywhere and always. Ten
 * languages and more scripts, mixed with all that tokenizers get wrong. */
#ifndef TESTS_TEXT_LINES_H
#define TESTS_TEXT_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "text/chars.h"

enum { LINE_MAX = 4096 }; /* bytes of a line, at most */

struct line {
    uint64_t state;
    size_t n;
    char at[LINE_MAX];
};

/* A number from 0 to n - 1 (splitmix64). */
static inline uint32_t line_draw(struct line *line, uint32_t n)
{
    uint64_t z = line->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

static inline void line_put(struct line *line, uint32_t code)
{
    if (line->n + 4 <= LINE_MAX && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)) {
        line->n += utf8_put(code, line->at + line->n);
    }
}

static inline void line_add(struct line *line, const char *text)
{
    for (size_t n = strlen(text), i = 0, length; i < n; i += length) {
        uint32_t code;
        length = utf8_get(text + i, &code);
        line_put(line, code);
    }
}

#define LINE_PICK(line, array) ((array)[line_draw(line, sizeof(array) / sizeof *(array))])

/* A run of words (between spaces) out of a sentence, sometimes with one letter in the other case. */
static inline void line_words(struct line *line)
{
    static const char *const sentences[] = {
        "The keeper's lamp didn't go out, they've seen it; I'll ask why we're late and who'd pay "
        "\"half\".",
        "Version 2.0 of MyApp (built 1999-12-31) costs $3.50, i.e. 25% less than McDonald's "
        "e-mail@example.org!",
        "Der Bäcker aus Köln weiß, daß Füße größer werden; übrigens kostet’s 12,50 € im Café »Zur "
        "Brücke«.",
        "L'été dernier, où êtes-vous allés ? J'ai vu l'œuvre d'un maître français — ça m'a plu, "
        "n'est-ce pas ?",
        "El niño comió piñas en Málaga; ¿qué pasó después? ¡Nadie lo sabrá, aunque él canté a las "
        "18:45!",
        "A avó não põe açúcar no pão; amanhã às três haverá reunião, então traga maçãs e limões.",
        "Perché l'università è chiusa? Così non c'è più nessuno, né un po' di caffè, però resterà la "
        "città.",
        "Съешь ещё этих мягких булок, подъезд №7 открыт; её зовут Ирина, а объём — 3,5 литра.",
        "今天天气很好，我们去公园散步吧！他说：“价格是１２０元。”然后就走了……《红楼梦》第3回。",
        "吾輩は猫である。名前はまだ無い。「コーヒーをください」とガラス越しに言った。１０時ごろ、ヴァイ"
        "オリンが鳴った。",
        "나는 내일 아침 일찍 학교에 갈 거예요. 값이 얼마예요? 3만 원이에요! 꽃밭에서 읽고 싶다.",
        "वह कल बाज़ार गया था, और क़लम ख़रीदकर लाया। क्या आपने १२३ देखा?",
        "ذَهَبَ الوَلَدُ إِلى المَدْرَسَةِ، ثُمَّ عادَ. هل رأيتَ ١٢٣؟ والآن لا شيء.",
        "วันนี้อากาศดีมาก เราไปเดินเล่นที่สวนกันเถอะ น้ำแข็งกี่บาท ๑๒๓",
        "שָׁלוֹם עוֹלָם, מה שלומך היום? הלכתי לשוק וקניתי לחם.",
        "Tiếng Việt có nhiều dấu: ngày mai trời đẹp, chúng tôi sẽ đi chợ mua rượu và phở.",
        "Ο άνθρωπος ᾖδε τὴν μῆνιν· πού είναι το καφέ; Ἀχιλλεύς, 12 €.",
        "İstanbul'da ığdır çiçeği açtı; ŞİŞLİ'ye gidelim mi? Ŀŀull, Ǆep, ǅep, ﬁn, ſtraſſe, ŉ.",
        "தமிழ் மொழி பழமையானது. கோயில் மணி ஒலித்தது. বাংলা ভাষায় কোনো কথা। ქართული ენა. Հայերեն լեզու։ "
        "አማርኛ ቋንቋ።",
    };
    const char *text = LINE_PICK(line, sentences);
    size_t n = strlen(text), begin = line_draw(line, (uint32_t)n),
           end = begin + 1 + line_draw(line, 60);
    end = end < n ? end : n;
    while (begin > 0 && ((uint8_t)text[begin] & 0xc0) == 0x80) {
        begin--;
    }
    while (begin < end) {
        uint32_t code;
        begin += utf8_get(text + begin, &code);
        bool letter = (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
        line_put(line, letter && line_draw(line, 25) == 0 ? code ^ 0x20 : code);
    }
}

/* A few code points of one region. */
static inline void line_region(struct line *line)
{
    static const uint32_t regions[][2] = {{0x20, 0x7e}, {0xa0, 0x24f}, {0x250, 0x36f}, {0x370, 0x52f},
        {0x530, 0x6ff}, {0x700, 0x8ff}, {0x900, 0xdff}, {0xe00, 0x10ff}, {0x1100, 0x11ff},
        {0x1200, 0x17ff}, {0x1800, 0x1cff}, {0x1d00, 0x1fff}, {0x2000, 0x20ff}, {0x2100, 0x2bff},
        {0x2c00, 0x2fff}, {0x3000, 0x33ff}, {0x4e00, 0x9fff}, {0xa000, 0xabff}, {0xac00, 0xd7ff},
        {0xe000, 0xfaff}, {0xfb00, 0xffff}, {0x10000, 0x10fff}, {0x11000, 0x11fff}, {0x12000, 0x16fff},
        {0x1b000, 0x1cfff}, {0x1d000, 0x1dfff}, {0x1e000, 0x1efff}, {0x1f000, 0x1faff},
        {0x20000, 0x3ffff}, {0xe0000, 0xe01ff}, {0, 0x10ffff}};
    const uint32_t *region = LINE_PICK(line, regions);
    for (uint32_t n = 1 + line_draw(line, 6); n > 0; n--) {
        line_put(line, region[0] + line_draw(line, region[1] - region[0] + 1));
    }
}

/* A letter with marks in any order; now and then very many. */
static inline void line_marks(struct line *line)
{
    static const uint32_t letters[] = {'a', 'E', '<', '=', 0xe9, 0x41a, 0x438, 0x3b1, 0x915, 0xb95,
        0x9c7, 0xe01, 0x304b, 0x30cf, 0x1100, 0xac00, 0x1161, 0x5d0, 0x627, 0xfb1d, 0x212b, 0xf900,
        0x2adc, 0x11935};
    static const uint32_t marks[] = {0x300, 0x301, 0x304, 0x307, 0x308, 0x30a, 0x316, 0x323, 0x327,
        0x328, 0x334, 0x338, 0x340, 0x344, 0x345, 0x35c, 0x360, 0x5b0, 0x5bc, 0x5c1, 0x64b, 0x651,
        0x653, 0x670, 0x93c, 0x94d, 0x9be, 0x9d7, 0xbbe, 0xe31, 0xe38, 0xe48, 0xf71, 0xf72, 0xf73,
        0x1161, 0x1175, 0x11a7, 0x11a8, 0x11c2, 0x1dc4, 0x20d0, 0x302a, 0x3099, 0x309a, 0xfe20, 0x898,
        0x1abf, 0x1df6, 0x11930, 0x1e4ec, 0x1d165};
    line_put(line, LINE_PICK(line, letters));
    uint32_t most = line_draw(line, 20) == 0 ? 90 : 4;
    for (uint32_t n = line_draw(line, most); n > 0; n--) {
        line_put(line, LINE_PICK(line, marks));
    }
}

static inline void line_space(struct line *line)
{
    static const uint32_t spaces[] = {' ', ' ', ' ', '\n', '\n', '\r', '\t', 0xb, 0xc, 0x1c, 0x1f, 0x85,
        0xa0, 0x1680, 0x180e, 0x2000, 0x2003, 0x200a, 0x200b, 0x2028, 0x2029, 0x202f, 0x205f, 0x2060,
        0x3000, 0xfeff};
    uint32_t most = line_draw(line, 30) == 0 ? 80 : 5;
    for (uint32_t n = 1 + line_draw(line, most); n > 0; n--) {
        line_put(line, LINE_PICK(line, spaces));
    }
}

/* Short strings, each a case that one of the patterns, or the search for added tokens, looks at. */
static inline void line_case(struct line *line)
{
    static const char *const cases[] = {"'s", "'T", "'re", "'VE", "'m", "'Ll", "'D", "’s", "'ſ", "''s",
        "'sx", "O'Toole", "y'all'd've", "iPhone", "YouTube", "XMLHttpRequest", "PhD", "aB", "ABc",
        "ǅAa", "ʰA", "ªBº", "中A中a", "!\n/x", "/\r\n//", "://", "...\n\n", " !\n", "?\r", "\r\n",
        "\n\n", " \n ", "\t\n", "0", "42", "3.14", "١٢٣", "½", "Ⅷ", "²", "१", "🄀", "𝟗", "\t", "\x1b",
        "\x7f", "\x01", "👍🏽", "🇩🇪", "1\uFE0F\u20E3", "❤\uFE0F",
        "\U0001F469\u200D\U0001F469\u200D\U0001F467", "\U0001F3F3\uFE0F\u200D\U0001F308",
        "🧑🏿\u200D🚀", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_end|", "|im_end|>",
        "<<|im_end|>>", "<|im_start|><|im_end|>", "<tts_pad>", "<tts_text_bos>",
        "<tts_text_bos_single>", "<tts_text_bos", "<think>", "</think>", "<tool_call>",
        "</tool_response>", "<|audio_pad|>", "<|IM_END|>", "<", "<|", "<t", "##", "#version: 0.2",
        "\\n", "\"", "~", "Å", "Å", "ﷺ", "ΐ", "각", "각", "か゛", "が", "ﬀ", "Ω", "≠", "≠", "〈", "〈"};
    line_add(line, LINE_PICK(line, cases));
}

static inline void line_run(struct line *line)
{
    static const uint32_t codes[] = {
        'a', 'A', ' ', '\n', '!', '0', '-', '=', 0x4e00, 0x301, 0xac00, 0x1f600, 0xe9, 0x41};
    uint32_t code = LINE_PICK(line, codes),
             n = 1 + line_draw(line, line_draw(line, 10) == 0 ? 300 : 12);
    for (; n > 0; n--) {
        line_put(line, code);
    }
}

/* Makes line `index`. A line without a single character is none: every line has at least one. */
static inline void line_make(struct line *line, uint64_t index)
{
    static void (*const parts[])(struct line *) = {
        line_words, line_region, line_marks, line_space, line_case, line_run};
    line->state = index * 0x2545f4914f6cdd1du + 1;
    line->n = 0;
    /* Every other line is mostly prose; in the others one part is favoured. */
    uint32_t favoured = index % 2 ? 0 : line_draw(line, 6);
    for (uint32_t n = 1 + line_draw(line, 12); n > 0 || line->n == 0; n -= n > 0) {
        parts[line_draw(line, 2) ? favoured : line_draw(line, 6)](line);
        if (line_draw(line, 4) == 0) {
            line_put(line, ' ');
        }
    }
}

#endif
