/* SPDX-License-Identifier: Apache-2.0
 * Cases of the strict checker: order inside a block and between blocks. */
#include "tests/cuda/strict/check_strict.h"

#include <stddef.h>

/* ---- Inside a block ---- */

static void double_buffer(bool left_out)
{
    for (int turn_of = 0; turn_of < 6; turn_of++) {
        uint32_t *buffer = shared[0] + turn_of % 2 * N;
        for (int t = 0; t < N; t++) {
            be(0, t);
            W(buffer + t);
        }
        if (!left_out || turn_of != 3) {
            barrier(0);
        }
        for (int t = 0; t < N; t++) {
            be(0, t);
            R(buffer + (t + 40) % N);
        }
    }
}

static void single_buffer(bool left_out)
{
    for (int turn_of = 0; turn_of < 3; turn_of++) {
        for (int t = 0; t < N; t++) {
            be(0, t);
            W(shared[0] + t);
        }
        barrier(0);
        for (int t = 0; t < N; t++) {
            be(0, t);
            R(shared[0] + (t + 1) % N);
        }
        if (!left_out || turn_of < 1) {
            barrier(0);
        }
    }
}

static void warp_exchange(bool left_out)
{
    for (int k = 0; k < 3; k++) {
        for (int t = 0; t < 32; t++) {
            be(0, t);
            W(shared[0] + t);
        }
        if (!left_out || k != 1) {
            warp_sync(0, 0, 0xffffffffu);
        }
        for (int t = 0; t < 32; t++) {
            be(0, t);
            R(shared[0] + (t ^ 1));
        }
        warp_sync(0, 0, 0xffffffffu);
    }
}

static void part_of_a_warp(bool left_out)
{
    for (int t = 0; t < 16; t++) {
        be(0, t);
        W(shared[0] + t);
    }
    warp_sync(0, 0, left_out ? 0xffffu : 0x1ffffu);
    if (left_out) {
        be(0, 16);
        strict_warp_sync(1u << 16);
    }
    be(0, 16);
    R(shared[0] + 3);
}

static void one_arrives_for_its_warp(bool left_out)
{
    for (int t = 0; t < 32; t++) {
        be(0, t);
        W(shared[0] + t);
    }
    if (!left_out) {
        warp_sync(0, 0, 0xffffffffu);
    }
    be(0, 0);
    strict_release_to(&shared[0][100]);
    be(0, 40);
    strict_acquire_from(&shared[0][100]);
    for (int t = 0; t < 32; t++) {
        R(shared[0] + t);
    }
}

static void halves_of_a_word(bool left_out)
{
    char *halves = (char *)shared[0];
    for (int t = 0; t < 64; t++) {
        be(0, t);
        strict_write(halves + 2 * t, 2, STRICT_PLAIN, STRICT_CTA);
    }
    for (int t = 0; t < 64; t++) {
        be(0, t);
        strict_read(halves + 2 * t, 2, STRICT_PLAIN, STRICT_CTA);
    }
    if (!left_out) {
        barrier(0);
    }
    for (int t = 0; t < 32; t++) {
        be(0, t);
        R(shared[0] + t);
    }
}

/* Each thread replaces its own half of a word. */
static void halves_in_place(bool left_out)
{
    char *halves = (char *)shared[0];
    for (int k = 0; k < 3; k++) {
        for (int t = 0; t < 64; t++) {
            be(0, t);
            strict_write(halves + 2 * t, 2, STRICT_PLAIN, STRICT_CTA);
        }
        barrier(0);
        for (int t = 0; t < 64; t++) {
            be(0, t);
            strict_read(halves + 2 * t, 2, STRICT_PLAIN, STRICT_CTA);
        }
        for (int t = 0; t < 64; t++) {
            be(0, t);
            strict_write(halves + 2 * (left_out ? t ^ 1 : t), 2, STRICT_PLAIN, STRICT_CTA);
        }
        barrier(0);
    }
}

/* One lane tells another warp about its half; the other half is not ready. */
static void half_told(bool left_out)
{
    char *halves = (char *)shared[0];
    for (int t = 0; t < 2; t++) {
        be(0, t);
        strict_write(halves + 2 * t, 2, STRICT_PLAIN, STRICT_CTA);
    }
    be(0, 0);
    strict_release_to(&shared[0][50]);
    be(0, 40);
    strict_acquire_from(&shared[0][50]);
    strict_read(halves, left_out ? 4 : 2, STRICT_PLAIN, STRICT_CTA);
}

static void read_by_all_warps(bool left_out)
{
    be(0, 5);
    W(shared[0]);
    barrier(0);
    for (int t = 0; t < N; t++) {
        be(0, t);
        R(shared[0]);
    }
    for (int t = 0; t < N; t++) {
        be(0, t);
        if (!left_out || t != 33) {
            strict_release_to(&shared[0][50]);
        }
    }
    be(0, 0);
    strict_acquire_from(&shared[0][50]);
    W(shared[0]);
}

static void part_of_the_block(bool left_out)
{
    for (int t = 0; t < 64; t++) {
        be(0, t);
        W(shared[0] + t);
    }
    barrier_of(0, 0, left_out ? 64 : N);
    be(0, 70);
    R(shared[0] + 3);
}

static void count_in_shared(bool left_out)
{
    be(0, 0);
    W(shared[0]);
    barrier(0);
    for (int t = 0; t < N; t++) {
        be(0, t);
        strict_update(shared[0], 4, STRICT_RELAXED, STRICT_GPU);
    }
    if (!left_out) {
        barrier(0);
    }
    be(0, 64);
    R(shared[0]);
}

static void places_change(bool left_out)
{
    for (int t = 0; t < 32; t++) {
        be(0, t);
        W(shared[0] + 1 + t);
    }
    strict_memory_swap(shared[0] + 1, shared[1] + 1, 128);
    be(1, 0);
    W(shared[0] + 1);
    barrier(0);
    if (!left_out) {
        strict_memory_swap(shared[0] + 1, shared[1] + 1, 128);
    }
    be(0, 1);
    R(shared[0] + 1);
}

/* Small variables, whose places in the image are others than where they live. */
static void small_ones_change_places(bool left_out)
{
    char *live = (char *)shared[0], *image = (char *)shared[1];
    be(0, 3);
    strict_write(live + 1, 1, STRICT_PLAIN, STRICT_CTA);
    strict_write(live + 4, 2, STRICT_PLAIN, STRICT_CTA);
    strict_write(live + 6, 2, STRICT_PLAIN, STRICT_CTA);
    for (int k = 0; k < 3; k++) {
        strict_memory_swap(live + 1, image + 2, 1);
        strict_memory_swap(live + 4, image + 8, 2);
        strict_memory_swap(live + 6, image + 10, 2);
        strict_memory_swap(live + 12, image + 18, 6);
    }
    strict_read(image + 8, 4, STRICT_PLAIN, STRICT_CTA);
    strict_read(image + 2, 1, STRICT_PLAIN, STRICT_CTA);
    be(0, left_out ? 4 : 3);
    strict_write(image + 2, 1, STRICT_PLAIN, STRICT_CTA);
}

/* ---- Between blocks ---- */

static void flag(
    bool left_out, enum strict_order put, enum strict_order get, enum strict_scope scope, int to)
{
    (void)left_out;
    be(0, 7);
    W(global + 10);
    W(global + 11);
    strict_write(global, 4, put, scope);
    be(to, 9);
    strict_read(global, 4, get, scope);
    R(global + 10);
    W(global + 11);
}

static void flag_release(bool left_out)
{
    flag(left_out, left_out ? STRICT_RELAXED : STRICT_RELEASE, STRICT_ACQUIRE, STRICT_GPU, 1);
}

static void flag_acquire(bool left_out)
{
    flag(left_out, STRICT_RELEASE, left_out ? STRICT_RELAXED : STRICT_ACQUIRE, STRICT_GPU, 2);
}

static void flag_near(bool left_out)
{
    flag(left_out, STRICT_RELEASE, STRICT_ACQUIRE, STRICT_CTA, left_out ? 1 : 0);
}

static void flag_of_cluster(bool left_out)
{
    flag(left_out, STRICT_RELEASE, STRICT_ACQUIRE, STRICT_CLUSTER, left_out ? 2 : 1);
}

/* Clusters of two blocks above each other, beside the ones of the case: blocks 0 and 2 of 2 x 2. */
static void flag_of_cluster_down(bool left_out)
{
    struct strict_op *second_op = strict_op_begin(2, "above");
    struct strict_grid *first = grid, *second = strict_grid_begin(second_op, "above",
                                          (struct host_dim){2, 2, 1}, N, (struct host_dim){1, 2, 1});
    grid = second;
    flag(left_out, STRICT_RELEASE, STRICT_ACQUIRE, STRICT_CLUSTER, left_out ? 1 : 2);
    grid = first;
    strict_grid_end(second);
    strict_op_end(second_op);
}

static void fences(bool writer, bool reader, enum strict_scope scope)
{
    be(0, 7);
    W(global + 10);
    if (writer) {
        strict_fence(scope);
    }
    strict_write(global, 4, STRICT_RELAXED, STRICT_GPU);
    be(1, 9);
    strict_read(global, 4, STRICT_RELAXED, STRICT_GPU);
    if (reader) {
        strict_fence(STRICT_GPU);
    }
    R(global + 10);
}

static void fence_of_writer(bool left_out)
{
    fences(!left_out, true, STRICT_GPU);
}

static void fence_of_reader(bool left_out)
{
    fences(true, !left_out, STRICT_GPU);
}

static void fence_wide_enough(bool left_out)
{
    fences(true, true, left_out ? STRICT_CTA : STRICT_SYS);
}

static void write_behind_the_fence(bool left_out)
{
    be(0, 7);
    if (!left_out) {
        W(global + 10);
    }
    strict_fence(STRICT_GPU);
    if (left_out) {
        W(global + 10);
    }
    strict_write(global, 4, STRICT_RELAXED, STRICT_GPU);
    be(1, 9);
    strict_read(global, 4, STRICT_RELAXED, STRICT_GPU);
    strict_fence(STRICT_GPU);
    R(global + 10);
}

/* As a kernel whose last block sums up what all have left. */
static void last_to_arrive(bool left_out)
{
    copy_in(1, global, 4); /* of a stream that this launch does not know: not used by it */
    for (int b = 0; b < 3; b++) {
        for (int t = 0; t < N; t++) {
            be(b, t);
            W(global + PAGE / 4 + b * N + t);
            if (!left_out || b != 1 || t != 50) {
                strict_fence(STRICT_GPU);
            }
        }
        barrier(b);
        be(b, 0);
        strict_update(global + 9 * PAGE / 4, 4, STRICT_RELAXED, STRICT_GPU);
        if (b == 2) {
            W(global + 9 * PAGE / 4);
        }
        barrier(b);
    }
    for (int t = 0; t < N; t++) {
        be(2, t);
        strict_fence(STRICT_GPU);
        for (int b = 0; b < 3; b++) {
            R(global + PAGE / 4 + b * N + t);
        }
    }
}

static void all_blocks(bool left_out)
{
    for (int k = 0; k < 4; k++) {
        for (int b = 0; b < BLOCKS; b++) {
            for (int t = 0; t < N; t++) {
                be(b, t);
                W(global + 100 + k % 2 * 1024 + b * N + t);
            }
            if (!left_out || k != 2) {
                barrier(b);
            }
            be(b, 0);
            strict_update(global + 9 * PAGE / 4, 4, STRICT_RELEASE, STRICT_GPU);
        }
        for (int b = 0; b < BLOCKS; b++) {
            be(b, 0);
            strict_read(global + 9 * PAGE / 4, 4, STRICT_ACQUIRE, STRICT_GPU);
            barrier(b);
            for (int t = 0; t < N; t++) {
                be(b, t);
                R(global + 100 + k % 2 * 1024 + (b + 1) % BLOCKS * N + (t + 5) % N);
            }
            barrier(b);
        }
    }
}

static void words_that_are_their_own_flags(bool left_out)
{
    for (int k = 0; k < 3; k++) {
        be(0, 3);
        strict_write(global + 10, 4, left_out && k == 1 ? STRICT_PLAIN : STRICT_RELAXED, STRICT_GPU);
        be(3, 5);
        strict_read(global + 10, 4, STRICT_RELAXED, STRICT_GPU);
    }
}

static void handed_on_twice(bool left_out)
{
    be(0, 3);
    W(global + 10);
    strict_update(global, 4, STRICT_RELEASE, STRICT_GPU);
    be(1, 3);
    strict_update(global, 4, left_out ? STRICT_RELAXED : STRICT_ACQ_REL, STRICT_GPU);
    strict_update(global + 1, 4, STRICT_RELEASE, STRICT_GPU);
    be(2, 3);
    strict_read(global + 1, 4, STRICT_ACQUIRE, STRICT_GPU);
    R(global + 10);
}

/* Two launches at once, of different streams; cells of the first stay in use by the second. */
static void flag_between_launches(bool left_out)
{
    struct strict_op *second_op = strict_op_begin(2, "beside");
    struct strict_grid *first = grid, *second = strict_grid_begin(
                                          second_op, "beside", (struct host_dim){2, 1, 1}, 32, ALONE);
    be(3, 90);
    W(global + 10);
    strict_write(global, 4, left_out ? STRICT_RELAXED : STRICT_RELEASE, STRICT_SYS);
    grid = second;
    be(1, 3);
    strict_read(global, 4, STRICT_ACQUIRE, STRICT_SYS);
    R(global + 10);
    strict_write(global + 20, 4, STRICT_RELEASE, STRICT_SYS);
    W(global + 21);
    strict_write(global, 4, STRICT_RELEASE, STRICT_SYS);
    grid = first;
    be(3, 90);
    strict_read(global, 4, STRICT_ACQUIRE, STRICT_SYS);
    R(global + 21);
    strict_grid_end(second);
    strict_op_end(second_op);
}

static void atomic_of_the_block(bool left_out)
{
    be(0, 3);
    strict_update(global + 10, 4, STRICT_RELAXED, left_out ? STRICT_CTA : STRICT_GPU);
    be(1, 3);
    strict_update(global + 10, 4, STRICT_RELAXED, STRICT_GPU);
}

const struct strict_case strict_cases_order[] = {
    {double_buffer, "two buffers, a barrier each", "race"},
    {single_buffer, "one buffer, a barrier behind the reads", "a read"},
    {warp_exchange, "exchange in a warp", "race"},
    {part_of_a_warp, "__syncwarp of some lanes", "race"},
    {one_arrives_for_its_warp, "one lane arrives for its warp", "race"},
    {halves_of_a_word, "two lanes write the halves of a word", "race"},
    {halves_in_place, "threads replace their halves", "a read"},
    {half_told, "one half of a word is told", "race"},
    {read_by_all_warps, "a word that all warps read", "a read"},
    {part_of_the_block, "a barrier of some warps", "race"},
    {count_in_shared, "a counter in shared memory", "race"},
    {places_change, "shared memory changes places", "race"},
    {small_ones_change_places, "small variables change places", "race"},
    {flag_release, "a flag, released", "race"},
    {flag_acquire, "a flag, acquired", "race"},
    {flag_near, "a flag of the block", "race"},
    {flag_of_cluster, "a flag of the cluster", "race"},
    {flag_of_cluster_down, "a flag of a cluster that goes down the grid", "race"},
    {fence_of_writer, "a fence before the flag", "race"},
    {fence_of_reader, "a fence behind the flag", "race"},
    {fence_wide_enough, "a fence as wide as needed", "race"},
    {write_behind_the_fence, "a write before the fence", "race"},
    {last_to_arrive, "the last block sums up", "race"},
    {all_blocks, "a barrier of all blocks", "race"},
    {words_that_are_their_own_flags, "words that are their own flags", "race"},
    {handed_on_twice, "handed on twice", "race"},
    {flag_between_launches, "a flag between two launches", "race"},
    {atomic_of_the_block, "an atomic for the GPU", "race"},
    {NULL, NULL, NULL},
};
