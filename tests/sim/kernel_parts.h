/* SPDX-License-Identifier: Apache-2.0
 * The system as its own files see it. */
#ifndef SIM_KERNEL_PARTS_H
#define SIM_KERNEL_PARTS_H

#include <sys/types.h>

#include "tests/sim/kernel.h"

enum {
    KERNEL_FIRST = 100, /* descriptors from here on are ours, the others those of the system below */
    KERNEL_FILES = 4500,
    STREAM_BYTES = 64 << 10, /* that wait in a stream, at most */
    LOCAL_BYTES = 208 << 10, /* likewise, between processes */
    MOST_PENDING = 1024,
    MOST_WAITING = 8,
};

struct bytes {
    uint8_t *bytes;
    size_t at, n, room;
};

struct end {
    struct end *peer; /* NULL: it has gone */
    struct bytes in;  /* to be read here */
    size_t most;      /* that may wait in it */
    int low_water;    /* that must be there before a poll says so */
    bool ended;       /* nothing more comes */
    bool reset;       /* and that is an error */
    bool shut;        /* nothing more leaves */
    bool lost;        /* a call about it failed */
    bool unread;      /* by that nobody will ever read it */
    bool unwatched;   /* it was one that looks for room to write: libevent says nothing of that */
    int n_files;
    /* Of epoll. */
    uint32_t asked;
    uint64_t epoll_data;
    bool listed;
    struct task *waiting[MOST_WAITING]; /* in calls about it */
    /* A client's, instead of files. */
    const struct end_watch *watch;
    void *user;
    /* A socket that listens. */
    bool listens, shuts_out; /* shuts_out: a filter drops what newcomers send */
    uint32_t address;
};

struct process {
    pid_t pid;
    struct task *task;
    int socket;
    bool killed, over;
    bool frozen;  /* by a fault */
    bool stopped; /* by a signal */
    int status;
};

struct kernel {
    struct end *files[KERNEL_FILES];
    struct end *listed[KERNEL_FILES]; /* those that epoll has something to say of */
    int n_listed, n_ends, n_unread;
    struct task *poller; /* in epoll_wait */
    struct end *listening;
    struct end *pending[MOST_PENDING]; /* connections that nobody has accepted yet */
    int n_pending;
    bool refuses; /* the last call to accept one has failed */
    int (*run_worker)(int socket);
    struct process *workers[KERNEL_WORKERS]; /* each kept until somebody has waited for it */
    int most_workers;
    pid_t next_pid;
    int64_t wall;
    double call_s, kib_s;
    void (*look)(void);
    double fails; /* of one call */
    enum failing fails_now;
    int64_t fails_until; /* all calls of that kind */
    uint64_t n_failed[N_FAILING], n_lasting;
    bool has_loop;        /* libevent has chosen epoll, which is all that is simulated */
    double lacks;         /* memory, of one allocation */
    uint64_t allocations; /* until the next one fails */
    int64_t lacks_until;  /* all of one process fail */
    pid_t lacks_memory;   /* that one; not its address, which the heap may give again */
};
extern struct kernel kernel;

/* A call that the linker brings here: its names for what was called, and for what it stands for. */
#define CALL(type, name, ...)                                                                          \
    type __real_##name(__VA_ARGS__);                                                                   \
    type __wrap_##name(__VA_ARGS__);                                                                   \
    type __wrap_##name(__VA_ARGS__)

struct end *end_new(void);
void ends_join(struct end *a, struct end *b);
size_t end_room(const struct end *e); /* for what is written here */
uint32_t end_ready(const struct end *e);
void end_touch(struct end *e);
/* This call of the front end fails. */
bool call_fails(enum failing what);
pid_t kernel_pid(void);         /* of the worker that runs; 0: of the front end */
void end_lose(struct end *e);   /* by that it is gone */
void end_excuse(struct end *e); /* by that the front end may give it up */
void end_cut(struct end *e);    /* its process is dead: what was sent stays */
void end_free(struct end *e, bool reset);
size_t end_put(struct end *e, const uint8_t *bytes, size_t n);
size_t end_get(struct end *e, uint8_t *bytes, size_t n);

/* Waits until something has changed, or the time has come; at_ns < 0: however long. */
void end_wait(struct end *e, int64_t at_ns);

int file_new(struct end *e);
struct end *file_end(int file); /* NULL: not one of ours */
void file_close(int file);

#endif
