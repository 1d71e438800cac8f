/* SPDX-License-Identifier: Apache-2.0
 * What every test program shares: cmocka, calls that fail on purpose, folders that vanish.
 *
 * The linker sends every malloc, open, read ... of the library and of the tests through tests/support.c.
 * support_fail_at(kind, n) makes the n-th such call from now fail, once. The usual loop:
 *
 *     SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n) {
 *         utter_status status = thing_open(&thing, ...);
 *         ... a failed status, or success (support_failed() tells whether the call was made at all) ...
 *     }
 */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Everything is ten times slower then. A sanitizer looks at paths, which a little work takes as well as much: long
 * cases are left to the plain build. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SUPPORT_SANITIZED = 1 };
#else
enum { SUPPORT_SANITIZED = 0 };
#endif

enum support_call {
    SUPPORT_MALLOC, /* malloc, calloc, realloc, aligned_alloc, posix_memalign */
    SUPPORT_MMAP,
    SUPPORT_OPEN,
    SUPPORT_READ,
    SUPPORT_WRITE,
    SUPPORT_FSYNC,
    SUPPORT_RENAME,
    SUPPORT_THREAD, /* pthread_create */
    N_SUPPORT_CALLS
};

/* The n-th (1 is the next) call of this kind fails; 0: none. Forgets what failed before. */
void support_fail_at(enum support_call call, long n);
/* That call and every later one of this kind, until support_fail_off. */
void support_fail_from(enum support_call call, long n);
/* The process is killed in place of the n-th such call. For a child. */
void support_crash_at(enum support_call call, long n);
/* Before that call, which does not fail, `happens` is called: what others do to a file meanwhile. It makes no such call
 * itself. */
void support_happens_at(enum support_call call, long n, void (*happens)(void));
/* Of the call that was chosen just now: it fails with this errno in place of its usual one. SUPPORT_MOVES_NOTHING: a
 * read or a write ends well, without a byte. */
enum { SUPPORT_MOVES_NOTHING = -1 };
void support_fail_with(int reason);
bool support_failed(
    void); /* the call that was chosen was made: it failed, or something happened then */
void support_fail_off(void);
/* Calls of this kind since the program began. */
long support_calls(enum support_call call);
/* Bytes that were asked of the heap since the program began. */
size_t support_bytes(void);

#define support_fail_malloc_at(n) support_fail_at(SUPPORT_MALLOC, n)
#define support_fail_mmap_at(n) support_fail_at(SUPPORT_MMAP, n)
#define support_fail_open_at(n) support_fail_at(SUPPORT_OPEN, n)
#define support_fail_read_at(n) support_fail_at(SUPPORT_READ, n)
#define support_fail_write_at(n) support_fail_at(SUPPORT_WRITE, n)
#define support_fail_fsync_at(n) support_fail_at(SUPPORT_FSYNC, n)
#define support_fail_rename_at(n) support_fail_at(SUPPORT_RENAME, n)

/* Runs its body with the first call failing, then the second, ... until the body ends without having
 * made the n-th call; that last round runs with nothing failing. Leave the body only at its end. */
#define SUPPORT_EACH_FAILURE(call, n)                                                                  \
    for (long n = 1; n > 0; n = support_failed() ? n + 1 : (support_fail_off(), 0))                    \
        for (int n##_once = (support_fail_at(call, n), 1); n##_once; n##_once = 0)

/* Whoever opens the file `path` gets `other` in its place; NULL: no more. */
void support_stand_in(const char *path, const char *other);

/* read and write move at most `bytes` bytes a call; 0: as many as asked. */
void support_short_io(size_t bytes);

/* cmocka catches SIGBUS in every test; after this call files that shrink are our guard's business. To be
 * called before the file is opened. */
void support_leave_sigbus(void);

/* A new empty folder, the same for the whole program, removed with its content at exit. */
const char *support_folder(void);
/* support_folder()/name; valid until 8 more calls. */
const char *support_path(const char *name);
void support_write_file(const char *path, const void *data, size_t bytes);
/* The whole file and a final zero, to be freed with free(); NULL when there is none. */
char *support_read_file(const char *path, size_t *bytes);
void support_assert_content(const char *path, const char *wanted);
/* Makes support_path(name) a folder. */
const char *support_fresh_folder(const char *name);
/* Files in a folder, hidden ones too. */
int support_count_files(const char *folder);
/* Mappings of files with this name in the address space. */
int support_count_mappings(const char *name);

/* What a child of its own does, and how it ends: its exit status, or 1000 + its signal. */
int support_child_end(void (*child)(void));

#endif
