/* SPDX-License-Identifier: Apache-2.0
 * The short vectors of CUDA C with the alignment that they have on a GPU: of two and four they are read at once. */
#ifndef TESTS_CUDA_HOST_VECTOR_TYPES_H
#define TESTS_CUDA_HOST_VECTOR_TYPES_H

/* TYPE1 to TYPE4 of element `type`; `of2` and `of4` are the alignments of two and four of them. */
#define HOST_VECTORS(name, type, of2, of4)                                                             \
    struct name##1                                                                                     \
    {                                                                                                  \
        type x;                                                                                        \
    };                                                                                                 \
    struct __attribute__((aligned(of2))) name##2                                                       \
    {                                                                                                  \
        type x, y;                                                                                     \
    };                                                                                                 \
    struct name##3                                                                                     \
    {                                                                                                  \
        type x, y, z;                                                                                  \
    };                                                                                                 \
    struct __attribute__((aligned(of4))) name##4                                                       \
    {                                                                                                  \
        type x, y, z, w;                                                                               \
    };                                                                                                 \
    HOST_VECTOR_NAMES(name, type)

#ifdef __cplusplus
#define HOST_VECTOR_NAMES(name, type)                                                                  \
    static inline name##1 make_##name##1(type x)                                                       \
    {                                                                                                  \
        return name##1 {x};                                                                            \
    }                                                                                                  \
    static inline name##2 make_##name##2(type x, type y)                                               \
    {                                                                                                  \
        return name##2 {x, y};                                                                         \
    }                                                                                                  \
    static inline name##3 make_##name##3(type x, type y, type z)                                       \
    {                                                                                                  \
        return name##3 {x, y, z};                                                                      \
    }                                                                                                  \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                               \
    {                                                                                                  \
        return name##4 {x, y, z, w};                                                                   \
    }
#else
#define HOST_VECTOR_NAMES(name, type)                                                                  \
    typedef struct name##1 name##1;                                                                    \
    typedef struct name##2 name##2;                                                                    \
    typedef struct name##3 name##3;                                                                    \
    typedef struct name##4 name##4;
#endif

HOST_VECTORS(char, signed char, 2, 4)
HOST_VECTORS(uchar, unsigned char, 2, 4)
HOST_VECTORS(short, short, 4, 8)
HOST_VECTORS(ushort, unsigned short, 4, 8)
HOST_VECTORS(int, int, 8, 16)
HOST_VECTORS(uint, unsigned, 8, 16)
HOST_VECTORS(float, float, 8, 16)
HOST_VECTORS(longlong, long long, 16, 16)
HOST_VECTORS(ulonglong, unsigned long long, 16, 16)
HOST_VECTORS(double, double, 16, 16)

#undef HOST_VECTORS
#undef HOST_VECTOR_NAMES

/* Sizes of a grid and of a block. */
struct dim3 {
    unsigned x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z)
    {
    }
#endif
};
#ifndef __cplusplus
typedef struct dim3 dim3;
#endif

#endif
