/* SPDX-License-Identifier: Apache-2.0
 * Files that end before they say, by each byte that tells of their length. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "audio/sound_whole.h"

/* Of a copy that ends where nothing may be read: no byte behind its last one is. */
static bool is_whole(const void *data, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    uint8_t *map = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + room, page, PROT_NONE), 0);
    uint8_t *copy = map + room - bytes;
    memcpy(copy, data, bytes);
    bool whole = sound_is_whole(copy, bytes);
    munmap(map, room + page);
    return whole;
}

/* Whole at this length, and not when its last byte is gone. */
static void ends_at(const void *data, size_t bytes)
{
    assert_true(is_whole(data, bytes));
    assert_false(is_whole(data, bytes - 1));
}

#define WAV "RIFF\0\0\0\0WAVE"

/* A chunk of an odd size has a byte behind it that does not count. */
static void a_wav_has_its_samples(void **state)
{
    static const char plain[] = WAV "data\4\0\0\0abcd", odd[] = WAV "LIST\3\0\0\0abc\0data\2\0\0\0ab",
                      even[] = WAV "LIST\2\0\0\0abdata\2\0\0\0ab", piped[] = WAV "data\0\0\0\x7f",
                      cut[] = WAV "LIST\x20\0\0\0abcd";
    (void)state;
    static const char endless[] = WAV "data\xff\xff\xff\x7e", bare[] = WAV "LIST\4\0\0\0abcd",
                      last[] = WAV "LIST\4\0\0\0abcdata\0\0\0\0";
    ends_at(plain, sizeof plain - 1);
    ends_at(odd, sizeof odd - 1);
    ends_at(even, sizeof even - 1);
    assert_true(is_whole(piped, sizeof piped - 1));
    assert_false(is_whole(cut, sizeof cut - 1));
    assert_false(is_whole(endless, sizeof endless - 1));
    assert_false(is_whole(bare, sizeof bare - 1));
    assert_false(is_whole(last, sizeof last - 2));
    assert_false(is_whole(WAV, sizeof WAV - 1));
}

/* Every byte of a size counts, the first least; with 0 there is nothing to miss. */
static void a_size_has_four_bytes(void **state)
{
    static const size_t sizes[] = {0x0102, 0x010203, 0x01020304};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *data = calloc(sizes[i] + 20, 1);
        memcpy(data, WAV "data", 16);
        for (int k = 0; k < 4; k++) {
            data[16 + k] = (uint8_t)(sizes[i] >> 8 * k);
        }
        ends_at(data, sizes[i] + 20);
        memcpy(data + 8, "WAVf", 4);
        assert_true(is_whole(data, 40)); /* no WAV */
        free(data);
    }
    static const char empty[] = WAV "data\0\0\0\0";
    ends_at(empty, sizeof empty - 1);
}

/* A page: its flags, and a table of how long its segments are. */
static size_t put_page(uint8_t *at, int flags, const uint8_t *sizes, size_t n)
{
    size_t bytes = 27 + n;
    memset(at, 'x', 27 + n + n * 255);
    memcpy(at, "OggS", 4);
    at[5] = (uint8_t)flags;
    at[26] = (uint8_t)n;
    memcpy(at + 27, sizes, n);
    for (size_t i = 0; i < n; i++) {
        bytes += sizes[i];
    }
    return bytes;
}

static void an_ogg_has_its_last_page(void **state)
{
    static const uint8_t sizes[] = {255, 3};
    uint8_t data[2 * (27 + 2 * 256)];
    (void)state;
    size_t first = put_page(data, 2, sizes, 2);
    assert_false(is_whole(data, first)); /* there are more pages */
    ends_at(data, first + put_page(data + first, 4, sizes, 2));
}

/* The last page that begins is asked, wherever it stands, and a page that only begins is none. */
static void an_ogg_is_asked_at_its_end(void **state)
{
    static const uint8_t none[1] = {0}, one[] = {200};
    uint8_t data[1200];
    (void)state;
    assert_true(is_whole(data, put_page(data, 4, none, 0))); /* nothing but the head of a page */
    assert_false(is_whole(data, put_page(data, 0, none, 0)));
    size_t first = put_page(data, 4, one, 1), all = first + put_page(data + first, 0, one, 1);
    assert_false(is_whole(data, all)); /* there are more, whatever the first one said */
    put_page(data + first, 0xff & ~4, one, 1);
    assert_false(is_whole(data, all));
    put_page(data + first, 0xff, one, 1);
    ends_at(data, all);
    /* Cut inside the next head the page before counts, and cut inside its table the next. */
    put_page(data + first, 0, one, 1);
    assert_true(is_whole(data, first + 26));
    assert_false(is_whole(data, first + 27));
    put_page(data + first, 4, one, 1);
    assert_false(is_whole(data, first + 27));
    assert_false(is_whole(data, first + 28));
    static const uint8_t two[] = {200, 100};
    put_page(data + first, 4, two, 2);
    assert_false(is_whole(data, first + 28));
    assert_false(is_whole(data, first + 29));
    data[first - 4] = 'O';
    data[first - 3] = 'g';
    assert_true(is_whole(data, first + 26));
}

/* The frame's head, and in it an Xing header that says how many bytes there are from the frame on. */
static size_t put_mp3(uint8_t *at, const char *name, int flags, size_t bytes)
{
    uint8_t *xing = at + 36;
    memset(at, 0, bytes);
    at[0] = 0xff;
    at[1] = 0xfb;
    memcpy(xing, name, 4);
    xing[7] = (uint8_t)flags;
    xing += flags & 1 ? 12 : 8;
    for (int i = 0; i < 4; i++) {
        xing[i] = (uint8_t)(bytes >> (24 - 8 * i));
    }
    return bytes;
}

/* A tag in front does not count; each byte of its size has 7 bits. */
static void an_mp3_has_its_bytes(void **state)
{
    static const size_t tags[] = {1, 127, 128, 200, 1 << 14, (1 << 14) + 129, 1 << 21};
    static uint8_t data[(1 << 21) + 1000];
    (void)state;
    ends_at(data, put_mp3(data, "Xing", 3, 300));
    ends_at(data, put_mp3(data, "Info", 2, 300));
    put_mp3(data, "Xing", 3, 300);
    assert_false(is_whole(data, 36 + 16));
    assert_true(is_whole(data, 36 + 15)); /* the header itself is cut */
    put_mp3(data, "Xing", 1, 300);
    assert_true(is_whole(data, 250)); /* it does not say */
    put_mp3(data, "King", 3, 300);
    assert_true(is_whole(data, 250));
    /* Where the header stands: at 13 to 36 in a frame, and not far behind. */
    put_mp3(data, "None", 3, 300);
    memcpy(data + 63, "Xing\0\0\0\2\0\0\1\x2c", 12);
    ends_at(data, 300);
    put_mp3(data, "None", 3, 300);
    memcpy(data + 64, "Xing\0\0\0\2\0\0\1\x2c", 12);
    assert_true(is_whole(data, 250));
    put_mp3(data, "Info", 3, 300);
    data[40] = 0x80; /* the first byte of its flags */
    ends_at(data, 300);
    put_mp3(data, "Xing", 2, 300);
    data[40] = 0x80;
    ends_at(data, 300);
    /* The other bits of its flags are of other things; all four bytes of the size count. */
    put_mp3(data, "Xing", 0xfe, 300);
    ends_at(data, 300);
    put_mp3(data, "Xing", 0xff, 300);
    ends_at(data, 300);
    ends_at(data, put_mp3(data, "Xing", 3, 0x010203));
    data[48] = 1;
    assert_false(is_whole(data, 0x010203));
    /* Any frame begins so; what does not is no MP3. */
    put_mp3(data, "Info", 2, 300);
    static const uint8_t heads[][3] = {
        {0xff, 0xe0, 1}, {0xff, 0xff, 1}, {0xff, 0xdf, 0}, {0xfe, 0xfb, 0}};
    for (int i = 0; i < 4; i++) {
        memcpy(data, heads[i], 2);
        assert_int_equal(!is_whole(data, 299), heads[i][2]);
    }
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        const size_t n = tags[i];
        memset(data, 0, sizeof data);
        memcpy(data, "ID3\4\0\0", 6);
        data[6] = (uint8_t)(n >> 21 & 127);
        data[7] = (uint8_t)(n >> 14 & 127);
        data[8] = (uint8_t)(n >> 7 & 127);
        data[9] = (uint8_t)(n & 127);
        ends_at(data, 10 + n + put_mp3(data + 10 + n, "Xing", 3, 300));
    }
}

static void what_does_not_say_is_whole(void **state)
{
    (void)state;
    assert_true(is_whole("", 0));
    assert_true(is_whole("fLaC and more", 13));
    static const char *const begins[] = {"RIFF\0\0\0\0WAV", "OggS1234567890123456789012",
        "ID3\4\0\0\0\0\0", "ID3\4\0\0\0\0\0\0", "\xff", "\xff\xfb", "ID3\4\0\0\0\0\0\x7fXing"};
    static const uint8_t lengths[] = {11, 26, 9, 10, 1, 2, 14};
    /* One with sizes of 64 bits has the name of a WAV, and does not begin as one. */
    assert_true(is_whole("RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0", 20));
    for (size_t i = 0; i < sizeof lengths; i++) { /* too little to say anything */
        assert_true(is_whole(begins[i], lengths[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wav_has_its_samples),
        cmocka_unit_test(a_size_has_four_bytes),
        cmocka_unit_test(an_ogg_has_its_last_page),
        cmocka_unit_test(an_ogg_is_asked_at_its_end),
        cmocka_unit_test(an_mp3_has_its_bytes),
        cmocka_unit_test(what_does_not_say_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
