/* SPDX-License-Identifier: Apache-2.0
 * Files mapped for reading, and the guard that keeps the process alive when such a file shrinks.
 *
 * Reading a mapped page that the file no longer has raises SIGBUS. The guard's handler looks for the
 * address in a table of our mappings; if it is there, it maps zeros from the faulting page to the end of
 * the mapping, marks the mapping damaged and lets the read go on. Any other SIGBUS goes to the handler
 * that was there before; a program that sets its own handler later is expected to pass on to ours.
 *
 * The table is a writable global, because a signal handler has no other way
 * to find it. It takes no lock, because the handler may run at any moment. */
#include "base/file.h"
#include "base/minmax.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_SLOTS = 1024 };

/* `state` is 0 (free), 1 (changing) or 2 (live) in its low two bits; the rest counts the uses, so that
 * the handler can tell when a slot changed while it looked. */
struct guard_slot {
    atomic_uint state;
    atomic_uintptr_t begin, end;
    atomic_bool damaged;
};

static struct {
    pthread_mutex_t lock; /* of the installation, never taken by the handler */
    bool is_installed;
    atomic_uintptr_t previous; /* the handler to pass on to, SIG_DFL or SIG_IGN */
    bool previous_takes_info;  /* written once, before our handler can run */
    struct guard_slot slots[N_SLOTS];
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { SLOT_FREE = 0, SLOT_CHANGING = 1, SLOT_LIVE = 2, SLOT_BITS = 3, SLOT_USE = 4 };

/* Zeros over the rest of the mapping that holds `address`. Async-signal-safe. */
static bool guard_repair(uintptr_t address)
{
    for (int i = 0; i < N_SLOTS; i++) {
        struct guard_slot *slot = &guard.slots[i];
        unsigned state = atomic_load(&slot->state);
        if ((state & SLOT_BITS) != SLOT_LIVE) {
            continue;
        }
        uintptr_t begin = atomic_load(&slot->begin), end = atomic_load(&slot->end);
        if (atomic_load(&slot->state) != state || address < begin || address >= end) {
            continue;
        }
        uintptr_t page = address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
        void *zeros =
            mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        atomic_store(&slot->damaged, true);
        return zeros != MAP_FAILED;
    }
    return false;
}

static void guard_handle(int signal_number, siginfo_t *info, void *context)
{
    int kept = errno;
    if (info->si_code > 0 && guard_repair((uintptr_t)info->si_addr)) {
        errno = kept;
        return;
    }
    uintptr_t previous = atomic_load(&guard.previous);
    if (previous != (uintptr_t)SIG_DFL && previous != (uintptr_t)SIG_IGN) {
        if (guard.previous_takes_info) {
            ((void (*)(int, siginfo_t *, void *))previous)(signal_number, info, context);
        } else {
            ((void (*)(int))previous)(signal_number);
        }
    } else if (previous == (uintptr_t)SIG_DFL || info->si_code > 0) {
        /* As if we were not here. The signal is blocked until we return, and then ends the process. */
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(signal_number, &standard, NULL);
        raise(signal_number);
    }
    errno = kept;
}

/* Puts our handler in place: the first time over any other, later only where somebody has reset it. */
static void guard_install(void)
{
    struct sigaction now,
        ours = {.sa_sigaction = guard_handle, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigemptyset(&ours.sa_mask);
    pthread_mutex_lock(&guard.lock);
    sigaction(SIGBUS, NULL, &now);
    bool takes_info = now.sa_flags & SA_SIGINFO;
    bool is_reset = !takes_info && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
    if (!guard.is_installed || is_reset) {
        if (!guard.is_installed) {
            guard.previous_takes_info = takes_info;
        }
        atomic_store(
            &guard.previous, takes_info ? (uintptr_t)now.sa_sigaction : (uintptr_t)now.sa_handler);
        sigaction(SIGBUS, &ours, NULL);
        guard.is_installed = true;
    }
    pthread_mutex_unlock(&guard.lock);
}

/* A slot for [data, data + size), or -1 when all are taken. */
static int guard_add(const void *data, size_t size)
{
    guard_install();
    for (int i = 0; i < N_SLOTS; i++) {
        struct guard_slot *slot = &guard.slots[i];
        unsigned state = atomic_load(&slot->state);
        if ((state & SLOT_BITS) == SLOT_FREE &&
            atomic_compare_exchange_strong(&slot->state, &state, state | SLOT_CHANGING)) {
            atomic_store(&slot->begin, (uintptr_t)data);
            atomic_store(&slot->end, (uintptr_t)data + size);
            atomic_store(&slot->damaged, false);
            atomic_store(&slot->state, (state & ~(unsigned)SLOT_BITS) + SLOT_USE + SLOT_LIVE);
            return i;
        }
    }
    return -1;
}

static void guard_remove(int i)
{
    struct guard_slot *slot = &guard.slots[i];
    unsigned state = atomic_load(&slot->state);
    atomic_store(&slot->state, (state & ~(unsigned)SLOT_BITS) + SLOT_FREE);
}

/* Maps the open file, or says why not. The descriptor stays the caller's after a failure. */
static utter_status map_descriptor(struct file_map *map, int fd, const char *path, utter_error *error)
{
    struct stat about;
    if (fstat(fd, &about) != 0) {
        return file_error(error, path, "read", errno);
    }
    if (!S_ISREG(about.st_mode)) {
        char name[1024];
        return S_ISDIR(about.st_mode) ? file_error(error, path, "read", EISDIR)
                                      : error_set(error, UTTER_E_FILE,
                                            "%s: is no file but a pipe or a device (save it first)",
                                            error_quote(name, sizeof name, path, strlen(path)));
    }
    if ((uintmax_t)about.st_size > SIZE_MAX / 2) {
        return file_error(error, path, "map", EFBIG);
    }
    if (about.st_size == 0) {
        return UTTER_OK;
    }
    size_t size = (size_t)about.st_size;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return file_error(error, path, "map", errno);
    }
    int slot = guard_add(data, size);
    if (slot < 0) {
        munmap(data, size);
        return error_set(error, UTTER_E_MEMORY, "%s: more than %d files are mapped", path, N_SLOTS);
    }
    *map = (struct file_map){.data = data, .size = size, .descriptor = fd, .slot = slot};
    return UTTER_OK;
}

utter_status file_map_open(struct file_map *map, const char *path, utter_error *error)
{
    *map = (struct file_map){0};
    /* Non-blocking: a pipe where a file should be must not hang us. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return file_error(error, path, "open", errno);
    }
    utter_status status = map_descriptor(map, fd, path, error);
    if (!map->data) {
        close(fd);
    }
    return status;
}

void file_map_rest(const struct file_map *map, const void *data, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)data, end = begin + bytes;
    uintptr_t map_begin = (uintptr_t)map->data, map_end = map_begin + map->size;
    begin = max(begin, map_begin);
    end = min(end, map_end);
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (map->data && begin < end && !atomic_load(&guard.slots[map->slot].damaged)) {
        madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}

bool file_map_damaged(const struct file_map *map)
{
    if (!map->data) {
        return false;
    }
    /* The guard saw a read past the end; or the end lies inside the last page, where reads give zeros
     * without a signal. */
    struct stat about;
    return atomic_load(&guard.slots[map->slot].damaged) || fstat(map->descriptor, &about) != 0 ||
           (uintmax_t)about.st_size < map->size;
}

void file_map_close(struct file_map *map)
{
    if (map->data) {
        guard_remove(map->slot);
        munmap((void *)map->data, map->size);
        close(map->descriptor);
    }
    *map = (struct file_map){0};
}
