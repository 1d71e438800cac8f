/* SPDX-License-Identifier: Apache-2.0
 * Strict: the functions that code calls which was compiled with -fsanitize=thread. The sanitizer's own library is not
 * linked. What gcc 12 leaves out or adds, and the options and names against it:
 *   what functions of the library write: memcpy, memmove, memset, sincosf: -include of strict_calls.h;
 *   calls of such functions that it makes itself: -fno-builtin-memcpy, -fno-builtin-memset,
 *     -fno-tree-loop-distribute-patterns;
 *   loads that it moves out of a loop though the loop may not need them: -fno-tree-loop-im;
 *   vectors, whose parts may be loads that the source has not: -fno-tree-vectorize, -fno-tree-slp-vectorize.
 * A struct that is copied whole is read with its padding, which must have been written. */
#ifdef HOST_STRICT
#include "tests/cuda/host/strict/strict_calls.h"
#include "tests/cuda/host/strict/strict_parts.h"

#undef memcpy
#undef memmove
#undef memset
#undef sincosf

#define PC __builtin_return_address(0)

static inline void plain(const void *at, size_t bytes, enum strict_act act, const void *pc)
{
    if (strict_now) {
        strict_access(strict_now, at, bytes, act, STRICT_PLAIN, STRICT_CTA, pc);
    }
}

/* A volatile access is a relaxed one for the whole system. */
static inline void relaxed(const void *at, size_t bytes, enum strict_act act, const void *pc)
{
    if (strict_now) {
        strict_access(strict_now, at, bytes, act, STRICT_RELAXED, STRICT_SYS, pc);
    }
}

/* A value of 2, 4 or 8 bytes stands at a multiple of that, or a GPU faults. What the compiler takes for 16 may be two
 * of 8. */
static inline void typed(const void *at, size_t bytes, enum strict_act act, const void *pc)
{
    if (strict_now) {
        if ((uintptr_t)at & ((bytes < 8 ? bytes : 8) - 1)) {
            strict_found(strict_now, strict_site(pc), at, bytes, act, "misaligned");
        }
        strict_access(strict_now, at, bytes, act, STRICT_PLAIN, STRICT_CTA, pc);
    }
}

#define ACCESSES(n)                                                                                    \
    void __tsan_read##n(void *at);                                                                     \
    void __tsan_write##n(void *at);                                                                    \
    void __tsan_read_write##n(void *at);                                                               \
    void __tsan_unaligned_read##n(void *at);                                                           \
    void __tsan_unaligned_write##n(void *at);                                                          \
    void __tsan_volatile_read##n(void *at);                                                            \
    void __tsan_volatile_write##n(void *at);                                                           \
    void __tsan_unaligned_volatile_read##n(void *at);                                                  \
    void __tsan_unaligned_volatile_write##n(void *at);                                                 \
    void __tsan_read##n(void *at)                                                                      \
    {                                                                                                  \
        typed(at, n, STRICT_READ, PC);                                                                 \
    }                                                                                                  \
    void __tsan_write##n(void *at)                                                                     \
    {                                                                                                  \
        typed(at, n, STRICT_WRITE, PC);                                                                \
    }                                                                                                  \
    void __tsan_read_write##n(void *at)                                                                \
    {                                                                                                  \
        typed(at, n, STRICT_READ, PC);                                                                 \
        typed(at, n, STRICT_WRITE, PC);                                                                \
    }                                                                                                  \
    void __tsan_unaligned_read##n(void *at)                                                            \
    {                                                                                                  \
        plain(at, n, STRICT_READ, PC);                                                                 \
    }                                                                                                  \
    void __tsan_unaligned_write##n(void *at)                                                           \
    {                                                                                                  \
        plain(at, n, STRICT_WRITE, PC);                                                                \
    }                                                                                                  \
    void __tsan_volatile_read##n(void *at)                                                             \
    {                                                                                                  \
        relaxed(at, n, STRICT_READ, PC);                                                               \
    }                                                                                                  \
    void __tsan_volatile_write##n(void *at)                                                            \
    {                                                                                                  \
        relaxed(at, n, STRICT_WRITE, PC);                                                              \
    }                                                                                                  \
    void __tsan_unaligned_volatile_read##n(void *at)                                                   \
    {                                                                                                  \
        relaxed(at, n, STRICT_READ, PC);                                                               \
    }                                                                                                  \
    void __tsan_unaligned_volatile_write##n(void *at)                                                  \
    {                                                                                                  \
        relaxed(at, n, STRICT_WRITE, PC);                                                              \
    }

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_vptr_update(void **at, void *value);
void __tsan_vptr_read(void **at);
void __tsan_read_range(void *at, unsigned long bytes);
void __tsan_write_range(void *at, unsigned long bytes);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
    (void)pc;
}

void __tsan_func_exit(void)
{
}

void __tsan_vptr_update(void **at, void *value)
{
    (void)value;
    plain(at, sizeof *at, STRICT_WRITE, PC);
}

void __tsan_vptr_read(void **at)
{
    plain(at, sizeof *at, STRICT_READ, PC);
}

void __tsan_read_range(void *at, unsigned long bytes)
{
    plain(at, bytes, STRICT_READ, PC);
}

void __tsan_write_range(void *at, unsigned long bytes)
{
    plain(at, bytes, STRICT_WRITE, PC);
}

/* ---- Functions of the library ---- */

void *strict_memcpy(void *to, const void *from, size_t bytes)
{
    plain(from, bytes, STRICT_READ, PC);
    plain(to, bytes, STRICT_WRITE, PC);
    return memcpy(to, from, bytes);
}

void *strict_memmove(void *to, const void *from, size_t bytes)
{
    plain(from, bytes, STRICT_READ, PC);
    plain(to, bytes, STRICT_WRITE, PC);
    return memmove(to, from, bytes);
}

void *strict_memset(void *at, int value, size_t bytes)
{
    plain(at, bytes, STRICT_WRITE, PC);
    return memset(at, value, bytes);
}

void strict_sincosf(float x, float *sine, float *cosine)
{
    plain(sine, sizeof *sine, STRICT_WRITE, PC);
    plain(cosine, sizeof *cosine, STRICT_WRITE, PC);
    sincosf(x, sine, cosine);
}

/* ---- Atomics of the language: for the GPU ---- */

static enum strict_order order_of(int order)
{
    return order == __ATOMIC_RELAXED   ? STRICT_RELAXED
           : order == __ATOMIC_RELEASE ? STRICT_RELEASE
           : order <= __ATOMIC_ACQUIRE ? STRICT_ACQUIRE
                                       : STRICT_ACQ_REL;
}

static inline void atomic(
    const volatile void *at, size_t bytes, enum strict_act act, int order, const void *pc)
{
    if (strict_now) {
        strict_access(strict_now, (const void *)at, bytes, act, order_of(order), STRICT_GPU, pc);
    }
}

#define UPDATE(bits, type, name)                                                                       \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order);                       \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order)                        \
    {                                                                                                  \
        atomic(at, sizeof *at, STRICT_UPDATE, order, PC);                                              \
        return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                                           \
    }

#define COMPARE(bits, type, name)                                                                      \
    int __tsan_atomic##bits##_##name(volatile type *at, type *old, type value, int order, int failed); \
    int __tsan_atomic##bits##_##name(volatile type *at, type *old, type value, int order, int failed)  \
    {                                                                                                  \
        (void)failed;                                                                                  \
        atomic(at, sizeof *at, STRICT_UPDATE, order, PC);                                              \
        return __atomic_compare_exchange_n(at, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }

#define ATOMICS(bits, type)                                                                            \
    type __tsan_atomic##bits##_load(const volatile type *at, int order);                               \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                        \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order);                     \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                                \
    {                                                                                                  \
        atomic(at, sizeof *at, STRICT_READ, order, PC);                                                \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                  \
    }                                                                                                  \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                         \
    {                                                                                                  \
        atomic(at, sizeof *at, STRICT_WRITE, order, PC);                                               \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                 \
    }                                                                                                  \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order)                      \
    {                                                                                                  \
        atomic(at, sizeof *at, STRICT_UPDATE, order, PC);                                              \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                       \
    }                                                                                                  \
    UPDATE(bits, type, fetch_add)                                                                      \
    UPDATE(bits, type, fetch_sub)                                                                      \
    UPDATE(bits, type, fetch_and)                                                                      \
    UPDATE(bits, type, fetch_or)                                                                       \
    UPDATE(bits, type, fetch_xor)                                                                      \
    UPDATE(bits, type, fetch_nand)                                                                     \
    COMPARE(bits, type, compare_exchange_strong)                                                       \
    COMPARE(bits, type, compare_exchange_weak)

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    strict_fence(STRICT_GPU);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

#else
typedef int strict_tsan_is_not_needed;
#endif
