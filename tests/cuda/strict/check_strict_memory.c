/* SPDX-License-Identifier: Apache-2.0
 * Cases of the strict checker: copies in the background, bounds and contents of memory, streams, instrumented code.
 * */
#include "tests/cuda/host/strict/strict_calls.h"
#include "tests/cuda/strict/check_strict.h"

#include <stddef.h>

/* ---- Copies in the background ---- */

static void groups(bool left_out)
{
    struct strict_copy *under_way[2][N];
    for (int k = 0; k < 6; k++) {
        for (int t = 0; t < N && k < 5; t++) {
            be(0, t);
            under_way[k % 2][t] = strict_copy_begin(shared[0] + k % 2 * 4 * N + 4 * t,
                global + 2 * PAGE / 4 + k * 4 * N + 4 * t, 16, false);
            strict_copy_land(under_way[k % 2][t], NULL);
        }
        if (k == 0) {
            continue;
        }
        for (int t = 0; t < N; t++) {
            be(0, t);
            if (!left_out || k != 3) {
                strict_copy_seen(under_way[(k - 1) % 2][t]); /* all groups but the last */
            }
            strict_read(shared[0] + (k - 1) % 2 * 4 * N + 4 * t, 16, STRICT_PLAIN, STRICT_CTA);
        }
        barrier(0);
    }
}

static void group_and_barrier(bool left_out)
{
    be(0, 0);
    struct strict_copy *copy = strict_copy_begin(shared[0], global + 2 * PAGE / 4, 16, false);
    strict_copy_land(copy, NULL);
    strict_copy_seen(copy);
    R(shared[0]);
    if (!left_out) {
        barrier(0);
    }
    be(0, 1);
    R(shared[0]);
}

static void group_without_wait(bool left_out)
{
    be(0, 0);
    struct strict_copy *copy = strict_copy_begin(shared[0], global + 2 * PAGE / 4, 16, false);
    strict_copy_land(copy, NULL);
    if (!left_out) {
        strict_copy_seen(copy);
    }
    barrier(0);
    be(0, 1);
    R(shared[0]);
}

enum { STAGES = 3, STAGE = 256 };

/* A producer (thread 64) fills stages with bulk copies; two warps read them. `fault`: what is left out. */
static void ring(int fault)
{
    static char full[STAGES][2], empty[STAGES][2]; /* two phases in turn */
    for (int k = 0; k < 7; k++) {
        int s = k % STAGES, phase = k / STAGES & 1;
        be(0, 64);
        if (k >= STAGES && fault != 1) {
            strict_acquire_from(&empty[s][phase ^ 1]);
        }
        struct strict_copy *copy = strict_copy_begin(
            shared[0] + s * STAGE / 4, global + 2 * PAGE / 4 + k * STAGE / 4, STAGE, true);
        strict_release_to(&full[s][phase]);
        strict_copy_land(copy, &full[s][phase]);
        for (int t = 0; t < 64; t++) {
            be(0, t);
            int seen = fault == 2 && k == 4 ? (s + STAGES - 1) % STAGES : s;
            strict_acquire_from(&full[seen][phase]);
            R(shared[0] + s * STAGE / 4 + t);
        }
        for (int w = 0; w < 2; w++) {
            if (fault != 3 || k != 1) {
                warp_sync(0, w, 0xffffffffu);
            }
            be(0, w * 32);
            strict_release_to(&empty[s][phase]);
        }
    }
}

static void ring_empty(bool left_out)
{
    ring(left_out ? 1 : 0);
}

static void ring_full(bool left_out)
{
    ring(left_out ? 2 : 0);
}

static void ring_warp(bool left_out)
{
    ring(left_out ? 3 : 0);
}

static void proxy_of_writers(bool left_out)
{
    for (int t = 0; t < 64; t++) {
        be(0, t);
        W(shared[0] + t);
        if (!left_out || t != 37) {
            strict_proxy_fence();
        }
    }
    barrier(0);
    be(0, 64);
    strict_copy_begin(shared[0], global + 2 * PAGE / 4, 256, true);
}

static void proxy_of_the_one_who_copies(bool left_out)
{
    be(1, 3);
    W(global + 10);
    strict_update(global, 4, STRICT_RELEASE, STRICT_GPU);
    be(0, 64);
    strict_read(global, 4, STRICT_ACQUIRE, STRICT_GPU);
    if (!left_out) {
        strict_proxy_fence();
    }
    strict_copy_begin(shared[0], global + 10, 4, true);
}

static void source_changes(bool left_out)
{
    be(0, 3);
    W(global + 10);
    strict_proxy_fence();
    struct strict_copy *copy = strict_copy_begin(shared[0], global + 10, 4, true);
    if (!left_out) {
        strict_copy_land(copy, &turn[2]);
        strict_acquire_from(&turn[2]);
    }
    W(global + 10);
}

static void source_of_a_copy_is_written(bool left_out)
{
    be(0, 3);
    strict_copy_begin(shared[0], left_out ? shared[1] : global + 2 * PAGE / 4, 16, true);
}

static void two_copies_to_one_place(bool left_out)
{
    be(0, 3);
    struct strict_copy *copy = strict_copy_begin(shared[0], global + 2 * PAGE / 4, 16, false);
    strict_copy_land(copy, NULL);
    if (!left_out) {
        strict_copy_seen(copy);
    }
    strict_copy_begin(shared[0], global + 2 * PAGE / 4 + 4, 16, false);
}

/* ---- Bounds, contents ---- */

static void written_first(bool left_out)
{
    be(0, 3);
    if (!left_out) {
        W(shared[0] + 3);
    }
    R(shared[0] + 3);
}

static void operand_of_no_result(bool left_out)
{
    be(0, 3);
    strict_read(shared[0] + 3, 16, left_out ? STRICT_PLAIN : STRICT_ANY, STRICT_CTA);
}

static void nothing_allocated(bool left_out)
{
    char *room = (char *)shared[0] + 3;
    strict_memory_add(room, 0, HOST_SHARED, "nothing", false);
    strict_memory_remove(room);
    be(0, 3);
    W(shared[0]);
    strict_memory_add(room, 0, HOST_SHARED, "nothing", false);
    R(shared[0]);
    strict_memory_remove(room);
    R(shared[0] + left_out);
}

static void byte_written_first(bool left_out)
{
    be(0, 3);
    strict_write(shared[0], left_out ? 3 : 4, STRICT_PLAIN, STRICT_CTA);
    R(shared[0]);
}

static void inside(bool left_out)
{
    be(0, 3);
    strict_read((char *)global + GLOBAL - (left_out ? 8 : 16), 16, STRICT_PLAIN, STRICT_CTA);
}

static void inside_a_piece(bool left_out)
{
    strict_memory_piece(shared[3], 1000, "first");
    strict_memory_piece(shared[3] + 256, 100, "second");
    be(3, 3);
    strict_write((char *)shared[3] + (left_out ? 988 : 984), 16, STRICT_PLAIN, STRICT_CTA);
}

static void no_device_memory(bool left_out)
{
    static uint32_t hosts[2][2 * PAGE];
    strict_allow(hosts[0], PAGE);
    be(0, 3);
    R(left_out ? hosts[1] + PAGE / 4 : hosts[0]);
    W(left_out ? hosts[1] + PAGE / 4 : hosts[0]);
}

static void gone_memory(bool left_out)
{
    static _Alignas(PAGE) uint32_t room[PAGE / 4];
    for (int k = 0; k < 2; k++) {
        strict_memory_add(room, 1000, HOST_GLOBAL, "room", false);
        be(k, 3);
        W(room + 3); /* another block, but another time of the memory */
        strict_memory_remove(room);
    }
    if (left_out) {
        R(room + 3);
    }
}

static void pinned(bool left_out)
{
    static _Alignas(PAGE) uint32_t room[PAGE / 4];
    strict_memory_add(room, sizeof room, left_out ? HOST_GLOBAL : HOST_PINNED, "room", false);
    be(0, 3);
    R(room + 3);
    strict_thread(NULL, 0, 0);
    strict_memory_remove(room);
}

static void constant(bool left_out)
{
    static _Alignas(PAGE) uint32_t room[PAGE / 4];
    strict_memory_add(room, sizeof room, HOST_CONSTANT, "constants", true);
    be(0, 3);
    R(room + 3);
    if (left_out) {
        W(room + 3);
    }
    strict_memory_remove(room);
}

static void aligned(bool left_out)
{
    be(0, 3);
    strict_aligned((char *)global + (left_out ? 8 : 32), 16, "not aligned");
}

/* ---- Streams ---- */

static void events(bool left_out)
{
    end();
    begin(2, "first kernel");
    be(0, 3);
    W(global + 10);
    uint64_t time = end();
    op = strict_op_begin(3, "second kernel");
    if (!left_out) {
        strict_op_after(op, 2, time);
    }
    grid = strict_grid_begin(op, "second kernel", ALL_BLOCKS, N, ALONE);
    be(1, 3);
    R(global + 10);
}

static void event_through_a_third(bool left_out)
{
    end();
    uint64_t first = copy_in(2, global + 10, 100);
    struct strict_op *between = strict_op_begin(3, "between");
    if (!left_out) {
        strict_op_after(between, 2, first);
    }
    uint64_t second = strict_op_end(between);
    op = strict_op_begin(4, "third kernel");
    strict_op_after(op, 3, second);
    grid = strict_grid_begin(op, "third kernel", ALL_BLOCKS, N, ALONE);
    be(1, 3);
    R(global + 10);
}

static void reuse_after_wait(bool left_out)
{
    end();
    begin(2, "reader");
    be(0, 3);
    W(global + 10);
    R(global + 11);
    uint64_t time = end();
    if (!left_out) {
        strict_host_knows(2, time);
    }
    copy_in(0, global + 10, 8);
    begin(2, "reader again");
    be(0, 3);
    R(global + 10);
}

static void weights_are_replaced(bool left_out)
{
    end();
    uint64_t time = copy_in(2, global + 4 * PAGE / 4, 2 * PAGE);
    strict_host_knows(2, time);
    begin(3, "reader of weights");
    be(0, 3);
    R(global + 5 * PAGE / 4 + 100);
    be(1, 3);
    R(global + 5 * PAGE / 4 + 101);
    time = end();
    if (!left_out) {
        strict_host_knows(3, time);
    }
    copy_in(0, global + 4 * PAGE / 4 + 16, 2 * PAGE - 64);
    begin(3, "reader of weights again");
    be(0, 3);
}

static void host_asked_earlier(bool left_out)
{
    end();
    uint64_t asked = left_out ? copy_in(0, global + 4000, 4) : 0;
    copy_in(0, global + 10, 8);
    asked = left_out ? asked : copy_in(0, global + 4000, 4);
    op = strict_op_begin(2, "asked for");
    strict_op_after(op, 0, asked);
    grid = strict_grid_begin(op, "asked for", ALL_BLOCKS, N, ALONE);
    be(0, 3);
    R(global + 10);
}

static void dependent_launch(bool left_out)
{
    be(0, 3);
    W(global + 10);
    struct strict_op *first_op = op, *second_op = strict_op_begin(1, "dependent");
    struct strict_grid *first = grid;
    grid = strict_grid_begin(second_op, "dependent", ALL_BLOCKS, N, ALONE);
    be(1, 5);
    op = second_op;
    strict_grid_end(first);
    uint64_t time = strict_op_end(first_op);
    strict_op_after(second_op, 1, time);
    be(0, 5);
    if (!left_out) {
        strict_wait_for_earlier();
    }
    barrier(0);
    be(0, 7);
    R(global + 10);
}

/* ---- What instrumented code calls ---- */

void __tsan_read4(void *at);
void __tsan_write4(void *at);
void __tsan_volatile_write4(void *at);
void __tsan_volatile_read4(void *at);
void __tsan_write_range(void *at, unsigned long bytes);

static void instrumented(bool left_out)
{
    be(0, 3);
    __tsan_write_range(shared[0], 64);
    memcpy(shared[0] + 16, shared[0], 64);
    barrier(0);
    be(0, 40);
    __tsan_read4(shared[0] + 31);
    __tsan_write4(shared[0] + 31);
    if (left_out) {
        __tsan_read4(shared[0] + 32);
    }
}

static void instrumented_alignment(bool left_out)
{
    be(0, 3);
    __tsan_read4((char *)global + (left_out ? 6 : 8));
}

static void volatile_flag(bool left_out)
{
    be(0, 3);
    __tsan_write4(global + 10);
    if (!left_out) {
        strict_fence(STRICT_SYS);
    }
    __tsan_volatile_write4(global);
    be(1, 3);
    __tsan_volatile_read4(global);
    strict_fence(STRICT_SYS);
    __tsan_read4(global + 10);
}

static void host_code(bool left_out)
{
    be(0, 3);
    W(shared[0]);
    strict_thread(left_out ? grid : NULL, 1, 3);
    W(shared[0]);
}

const struct strict_case strict_cases_memory[] = {
    {groups, "copies in two groups", "a copy in the background"},
    {group_and_barrier, "a copy that others read", "race"},
    {group_without_wait, "a copy that is waited for", "a copy in the background"},
    {ring_empty, "a ring of bulk copies: empty", "race"},
    {ring_full, "a ring of bulk copies: full", "a bulk copy"},
    {ring_warp, "a ring of bulk copies: all lanes have read", "a read"},
    {proxy_of_writers, "proxy fences of writers", "proxies"},
    {proxy_of_the_one_who_copies, "a proxy fence of who copies", "proxies"},
    {source_changes, "the source of a copy stays", "a read"},
    {source_of_a_copy_is_written, "the source of a copy has been written", "nobody"},
    {two_copies_to_one_place, "two copies to one place", "a copy in the background"},
    {written_first, "read when written", "nobody"},
    {operand_of_no_result, "an operand with columns of no result", "nobody"},
    {nothing_allocated, "an area of no bytes", "nobody"},
    {byte_written_first, "all bytes written", "nobody"},
    {inside, "inside the memory", "no memory"},
    {inside_a_piece, "inside a piece", "outside"},
    {no_device_memory, "memory of the device", "no memory"},
    {gone_memory, "memory that is there", "no memory"},
    {pinned, "pinned memory, written by the host", "nobody"},
    {constant, "constant memory is read", "constant"},
    {aligned, "an aligned address", "not aligned"},
    {events, "an event between streams", "race"},
    {event_through_a_third, "an event through a third stream", "race"},
    {reuse_after_wait, "the host waits before it writes", "race"},
    {weights_are_replaced, "the host waits before it replaces weights", "race"},
    {host_asked_earlier, "the host writes before it asks", "race"},
    {dependent_launch, "griddepcontrol.wait", "race"},
    {instrumented, "instrumented code", "nobody"},
    {instrumented_alignment, "instrumented code, aligned", "misaligned"},
    {volatile_flag, "a volatile flag", "race"},
    {host_code, "the host's own code", "race"},
    {NULL, NULL, NULL},
};
