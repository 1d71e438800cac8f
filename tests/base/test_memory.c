/* SPDX-License-Identifier: Apache-2.0
 * Blocks are zeroed, aligned, never larger than asked for; bytes are not read past their end. The linker sends madvise
 * here. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "tests/base/advised.h"
#include "tests/heap.h"

static bool is_zero(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Also after the heap has been dirtied with blocks of the same sizes. */
static void blocks_are_zeroed_and_aligned(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 7, 63, 64, 65, 4096, 100001, 3000000, 40000000};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            uint8_t *p = memory_new(sizes[i], 1);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 64, 0);
            assert_true(is_zero(p, sizes[i]));
            memset(p, 0xa5, sizes[i]);
            memory_free(p);
        }
    }
    memory_free(NULL);
}

/* Beside what is asked for there is room to align it, and a pointer. */
static void a_block_takes_little_more_than_it_has(void **state)
{
    enum { BYTES = 100000, LITTLE = 256 };
    (void)state;
    const size_t before = heap_used();
    void *block = memory_new(BYTES / 4, 4);
    const size_t taken = heap_used() - before;
    assert_non_null(block);
    if (taken > 0) { /* the heap is glibc's */
        assert_true(taken >= BYTES && taken <= BYTES + LITTLE);
    }
    memory_free(block);
}

static void what_is_freed_is_given_back(void **state)
{
    const size_t before = heap_used();
    (void)state;
    for (int i = 0; i < 1000; i++) {
        memory_free(memory_new(1000, 1));
        memory_free(memory_resize(memory_new(10, 1), 10, 1000, 1));
    }
    assert_true(heap_used() < before + 10000);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    assert_null(memory_new(SIZE_MAX, 2));
    assert_null(memory_new(SIZE_MAX / 2 + 1, 2));
    assert_null(memory_new(SIZE_MAX, 1));
    assert_null(memory_new(1, SIZE_MAX - 70));
    assert_null(memory_string_n("a", SIZE_MAX));
    size_t out = 5;
    assert_false(memory_multiply(SIZE_MAX, 2, &out));
    assert_false(memory_add(SIZE_MAX, 1, &out));
    assert_int_equal(out, 5);
    assert_true(memory_multiply(6, 7, &out));
    assert_int_equal(out, 42);
}

static void resize_keeps_and_zeroes(void **state)
{
    (void)state;
    uint32_t *p = memory_resize(NULL, 0, 10, sizeof *p);
    assert_non_null(p);
    for (uint32_t i = 0; i < 10; i++) {
        p[i] = i + 1;
    }
    p = memory_resize(p, 10, 10000, sizeof *p);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 64, 0);
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(p[i], i < 10 ? i + 1 : 0);
    }
    assert_null(memory_resize(p, 10000, SIZE_MAX / 2, sizeof *p));
    support_fail_malloc_at(1);
    assert_null(memory_resize(p, 10000, 20000, sizeof *p));
    support_fail_off();
    assert_int_equal(p[9], 10); /* as it was */
    p = memory_resize(p, 10000, 3, sizeof *p);
    assert_non_null(p);
    assert_int_equal(p[2], 3);
    memory_free(p);
}

static void strings_are_copied(void **state)
{
    (void)state;
    char *a = memory_string("abc"), *b = memory_string_n("abcdef", 2), *c = memory_string_n(NULL, 0);
    assert_string_equal(a, "abc");
    assert_string_equal(b, "ab");
    assert_string_equal(c, "");
    memory_free(a);
    memory_free(b);
    memory_free(c);
    support_fail_malloc_at(1);
    assert_null(memory_string("abc"));
    support_fail_off();
}

/* Bytes of a block that are in real memory, in whole pages. */
static size_t resident_bytes(const void *block, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = bytes / page, n_resident = 0;
    uintptr_t first = ((uintptr_t)block + page - 1) & ~(uintptr_t)(page - 1);
    unsigned char *flags = memory_new(n, 1);
    assert_non_null(flags);
    assert_int_equal(mincore((void *)first, (n - 1) * page, flags), 0);
    for (size_t i = 0; i < n; i++) {
        n_resident += flags[i] & 1;
    }
    memory_free(flags);
    return n_resident * page;
}

static void large_blocks_cost_nothing_until_used(void **state)
{
    (void)state;
    size_t bytes = (size_t)600 << 20;
    uint8_t *p = memory_new(bytes, 1);
    assert_non_null(p);
#ifndef __SANITIZE_THREAD__ /* whose calloc writes every byte */
    assert_true(resident_bytes(p, bytes) <= (size_t)4 << 20);
#endif
    p[0] = p[bytes - 1] = 1;
    memory_free(p);
}

static void reserved_space_rests(void **state)
{
    (void)state;
    size_t bytes = (size_t)8 << 30, used = (size_t)32 << 20;
    uint8_t *p = memory_reserve(bytes);
    assert_non_null(p);
    assert_true(is_zero(p, 4096));
    memset(p, 1, used);
    assert_true(resident_bytes(p, used) >= used / 2);
    p[bytes - 1] = 1;
    memory_rest(p, bytes);
    assert_int_equal(resident_bytes(p, used), 0);
    assert_true(is_zero(p, used));
    assert_int_equal(p[bytes - 1], 0);
    memory_release(p, bytes);
    memory_release(NULL, 1);
    p = memory_reserve(0);
    assert_non_null(p);
    memory_release(p, 0);
    support_fail_mmap_at(1);
    assert_null(memory_reserve(4096));
    support_fail_off();
}

/* Bytes of pages that are not whole in the range stay, and so does everything where none is. */
static void only_whole_pages_rest(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = 5 * page;
    const struct {
        size_t from, bytes, first, n; /* the pages that are given back */
    } cases[] = {{0, all, 0, 5}, {page, page, 1, 1}, {page + 1, 3 * page, 2, 2},
        {page - 1, 3 * page, 1, 2}, {page, 2 * page - 1, 1, 1}, {page, page - 1, 0, 0},
        {page + 1, 2 * page - 2, 0, 0}, {page, 0, 0, 0}};
    uint8_t *p = memory_reserve(all);
    assert_non_null(p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(p, 9, all);
        advised.n = 0;
        memory_rest(p + cases[i].from, cases[i].bytes);
        assert_int_equal(advised.n, cases[i].n > 0);
        for (size_t k = 0; k < all; k++) {
            const bool rests = k / page >= cases[i].first && k / page < cases[i].first + cases[i].n;
            assert_int_equal(p[k], rests ? 0 : 9);
        }
    }
    memory_release(p, all);
}

/* Whether something is mapped at this address. */
static bool is_mapped(const void *address)
{
    unsigned char flags;
    return mincore((void *)address, 1, &flags) == 0;
}

static void released_space_is_free(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static const size_t pages[] = {1, 7};
    for (int i = 0; i < 2; i++) {
        uint8_t *p = memory_reserve(pages[i] * page);
        assert_true(is_mapped(p) && is_mapped(p + (pages[i] - 1) * page));
        memory_release(p, pages[i] * page);
        assert_false(is_mapped(p) || is_mapped(p + (pages[i] - 1) * page));
    }
    uint8_t *none = memory_reserve(0);
    assert_true(is_mapped(none));
    memory_release(none, 0);
    assert_false(is_mapped(none));
}

/* From 32 MiB on a block is made of huge pages, as many of them as lie whole in it. */
static void large_blocks_have_huge_pages(void **state)
{
    (void)state;
    const size_t least = (size_t)32 << 20, huge = (size_t)2 << 20;
    for (size_t bytes = least - 1; bytes <= least + 1; bytes++) {
        advised.n = 0;
        uint8_t *p = memory_new(bytes, 1);
        assert_non_null(p);
        assert_int_equal(advised.n, bytes >= least);
        if (bytes >= least) {
            const uintptr_t begin = (uintptr_t)p, end = begin + bytes;
            assert_int_equal(advised.advice, MADV_HUGEPAGE);
            assert_int_equal(advised.begin % huge, 0);
            assert_int_equal(advised.bytes % huge, 0);
            assert_true(advised.begin >= begin && advised.begin - begin < huge);
            const uintptr_t advised_end = advised.begin + advised.bytes;
            assert_true(advised_end <= end && end - advised_end < huge);
        }
        memory_free(p);
    }
}

/* As the heap's own functions, which an outside library is given. */
static void plain_memory_is_the_heaps(void **state)
{
    (void)state;
    char *p = memory_plain_new(5);
    assert_non_null(p);
    memcpy(p, "abcd", 5);
    p = memory_plain_resize(p, 100000);
    assert_non_null(p);
    assert_string_equal(p, "abcd");
    support_fail_malloc_at(1);
    assert_null(memory_plain_resize(p, 200000));
    support_fail_malloc_at(1);
    assert_null(memory_plain_new(5));
    support_fail_off();
    assert_string_equal(p, "abcd"); /* as it was */
    memory_plain_free(p);
    memory_plain_free(NULL);
    const size_t before = heap_used();
    for (int i = 0; i < 100; i++) {
        memory_plain_free(memory_plain_new(1000));
    }
    assert_true(heap_used() < before + 10000);
}

/* Blocks that were freed between others that stay hold pages until they are given back. */
static void free_pages_are_given_back(void **state)
{
    (void)state;
    if (SUPPORT_SANITIZED) {
        skip(); /* whose heap is not glibc's */
    }
    enum { N = 20, BYTES = 100000 };
    char *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = malloc(BYTES);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, BYTES);
    }
    const char *middle = blocks[N / 2 - 1];
    for (int i = 1; i < N; i += 2) {
        free(blocks[i]);
    }
    assert_true(resident_bytes(middle, BYTES) > BYTES / 2);
    memory_give_back();
    assert_int_equal(resident_bytes(middle, BYTES - 8192), 0);
    for (int i = 0; i < N; i += 2) {
        free(blocks[i]);
    }
}

/* Last in main: from then on a block of 128 KiB has pages of its own, however large blocks were that were freed. */
static void large_blocks_are_never_kept(void **state)
{
    (void)state;
    if (SUPPORT_SANITIZED) {
        skip();
    }
    enum { N = 64, BYTES = 128 << 10 };
    memory_keep_little();
    free(malloc(20 << 20)); /* glibc would learn from that to keep such blocks */
    for (int large = 0; large < 2; large++) {
        const size_t before = heap_mapped_blocks();
        void *blocks[N];
        for (int i = 0; i < N; i++) { /* the first ones may lie where others were freed */
            blocks[i] = malloc(large ? BYTES : BYTES - 4096);
        }
        const size_t n = heap_mapped_blocks() - before;
        for (int i = 0; i < N; i++) {
            free(blocks[i]);
        }
        assert_int_equal(n > 0, large);
        assert_int_equal(heap_mapped_blocks(), before);
    }
}

/* What is left when a block shrinks is its beginning. */
static void a_block_may_become_nothing(void **state)
{
    (void)state;
    uint8_t *p = memory_new(100, 1);
    memset(p, 5, 100);
    p = memory_resize(p, 100, 0, 1);
    assert_non_null(p);
    p = memory_resize(p, 0, 100, 1);
    assert_non_null(p);
    assert_true(is_zero(p, 100));
    memory_free(p);
    support_fail_malloc_at(1);
    assert_null(memory_string_n("abc", 3));
    support_fail_off();
}

static void sums_and_products_reach_the_greatest_size(void **state)
{
    (void)state;
    size_t out = 5;
    assert_true(memory_add(SIZE_MAX - 1, 1, &out));
    assert_true(out == SIZE_MAX);
    assert_true(memory_multiply(SIZE_MAX, 1, &out));
    assert_true(out == SIZE_MAX);
    assert_true(memory_multiply(SIZE_MAX, 0, &out));
    assert_int_equal(out, 0);
    assert_true(memory_multiply(SIZE_MAX / 2, 2, &out));
    assert_true(out == SIZE_MAX - 1);
    assert_false(memory_multiply(SIZE_MAX / 2 + 1, 2, &out));
    assert_true(out == SIZE_MAX - 1);
}

static void bytes_never_read_past_the_end(void **state)
{
    (void)state;
    static const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct bytes b = bytes_of(data, sizeof data);
    assert_int_equal(bytes_number(&b, 2), 0x0201);
    assert_int_equal(bytes_left(&b), 7);
    assert_ptr_equal(bytes_take(&b, 3), data + 2);
    assert_int_equal(bytes_number(&b, 8), 0);
    assert_true(b.short_read);
    assert_null(bytes_take(&b, 1)); /* sticky */
    b = bytes_of(data, sizeof data);
    assert_true(bytes_number(&b, 8) == 0x0807060504030201u);
    assert_null(bytes_take(&b, SIZE_MAX));
    b = bytes_of(NULL, 0);
    assert_int_equal(bytes_left(&b), 0);
    assert_int_equal(bytes_number(&b, 1), 0);
    assert_true(b.short_read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_and_aligned),
        cmocka_unit_test(a_block_takes_little_more_than_it_has),
        cmocka_unit_test(what_is_freed_is_given_back),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(resize_keeps_and_zeroes),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(large_blocks_cost_nothing_until_used),
        cmocka_unit_test(reserved_space_rests),
        cmocka_unit_test(only_whole_pages_rest),
        cmocka_unit_test(released_space_is_free),
        cmocka_unit_test(large_blocks_have_huge_pages),
        cmocka_unit_test(plain_memory_is_the_heaps),
        cmocka_unit_test(free_pages_are_given_back),
        cmocka_unit_test(a_block_may_become_nothing),
        cmocka_unit_test(sums_and_products_reach_the_greatest_size),
        cmocka_unit_test(bytes_never_read_past_the_end),
        cmocka_unit_test(large_blocks_are_never_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
