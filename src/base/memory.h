/* SPDX-License-Identifier: Apache-2.0
 * Memory: the only caller of malloc in the library. Nothing here aborts; NULL means that there is no
 * more. Sizes are multiplied here, checked. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* n * size bytes, zeroed, aligned to 64 bytes. NULL when out of memory or when n * size overflows; a
 * valid pointer for zero bytes. Free with memory_free. */
void *memory_new(size_t n, size_t size);
/* Grows or shrinks a memory_new block of n_old elements to n_new; new elements are zeroed. On NULL the
 * old block stays as it was. */
void *memory_resize(void *block, size_t n_old, size_t n_new, size_t size);
void memory_free(void *block); /* accepts NULL */

/* Memory for a library that takes its own through hooks: neither zeroed nor aligned beyond malloc's. */
void *memory_plain_new(size_t bytes);
void *memory_plain_resize(void *block, size_t bytes); /* as realloc */
void memory_plain_free(void *block);                  /* accepts NULL */

/* From now on the pages of a freed block of 128 KiB or more are the system's again, for what runs long and shall not
 * grow; else the heap may keep them, and of blocks of ever other sizes it keeps many. */
void memory_keep_little(void);
/* Gives back the pages of the heap on which nothing lies just now, wherever in it they are. */
void memory_give_back(void);

/* Address space that takes real memory only where it is touched (zeroed), for caches whose final size
 * is not known. NULL when refused. memory_rest gives the real memory of the pages that lie whole in it back, the
 * addresses stay. */
void *memory_reserve(size_t bytes);
void memory_rest(void *block, size_t bytes);
void memory_release(void *block, size_t bytes); /* accepts NULL */

/* A copy of a string, or of `bytes` bytes plus a final zero. */
char *memory_string(const char *text);
char *memory_string_n(const char *text, size_t bytes);

/* Checked arithmetic for sizes that come from files: false on overflow, *out untouched. */
static inline int memory_multiply(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) {
        return 0;
    }
    *out = product;
    return 1;
}
static inline int memory_add(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return 0;
    }
    *out = sum;
    return 1;
}

#endif
