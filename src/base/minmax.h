/* SPDX-License-Identifier: Apache-2.0
 * min(a, b) and max(a, b) of two numbers, each evaluated once. The type is what C makes of the two in
 * `a < b ? a : b`. Of floats where one is NaN the result is b, as it is of the comparison. */
#ifndef BASE_MINMAX_H
#define BASE_MINMAX_H

#define MINMAX_OF(type, name)                                                                          \
    static inline type min_##name(type a, type b)                                                      \
    {                                                                                                  \
        return a < b ? a : b;                                                                          \
    }                                                                                                  \
    static inline type max_##name(type a, type b)                                                      \
    {                                                                                                  \
        return a > b ? a : b;                                                                          \
    }

MINMAX_OF(int, int)
MINMAX_OF(unsigned, unsigned)
MINMAX_OF(long, long)
MINMAX_OF(unsigned long, unsigned_long)
MINMAX_OF(long long, long_long)
MINMAX_OF(unsigned long long, unsigned_long_long)
MINMAX_OF(float, float)
MINMAX_OF(double, double)
#undef MINMAX_OF

/* clang-format off */
#define MINMAX_CALL(what, a, b)                           \
    _Generic((a) + (b),                                   \
        int: what##_int,                                  \
        unsigned: what##_unsigned,                        \
        long: what##_long,                                \
        unsigned long: what##_unsigned_long,              \
        long long: what##_long_long,                      \
        unsigned long long: what##_unsigned_long_long,    \
        float: what##_float,                              \
        double: what##_double)(a, b)
/* clang-format on */

#define min(a, b) MINMAX_CALL(min, a, b)
#define max(a, b) MINMAX_CALL(max, a, b)

#endif
