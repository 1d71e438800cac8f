// Wrong changes that stand side by side in a copy of the tree, each asleep until its number is named
// (tools/draw_mutants, which includes this before each file that it changes).
//   WRONG=17,203     in the environment: the changes that are made
//   WRONG_REACHED=F  a file of WRONG_MOST bytes, of which the n-th becomes 1 when the place of change n is reached
#ifndef UTTER_WRONG_H
#define UTTER_WRONG_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WRONG_MOST = 4096 };

// Weak: one of each in a program, however many of its files are changed.
#define WRONG_SHARED __attribute__((weak, visibility("hidden")))
WRONG_SHARED unsigned char wrong_made[WRONG_MOST], wrong_nowhere[WRONG_MOST];
WRONG_SHARED unsigned char *wrong_reached;

// Before main(), and so before a process gives up its rights. The system is called by number: tests put calls of their
// own in place of open() and mmap().
__attribute__((constructor)) static void wrong_wake(void)
{
    if (wrong_reached) {
        return;
    }
    wrong_reached = wrong_nowhere;
    const char *made = getenv("WRONG"), *file = getenv("WRONG_REACHED");
    for (char *end; made && *made; made = *end ? end + 1 : end) {
        unsigned long n = strtoul(made, &end, 10);
        wrong_made[n % WRONG_MOST] = 1;
    }
    long fd = file ? syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        long at = syscall(SYS_mmap, NULL, WRONG_MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        wrong_reached = at == -1 ? wrong_nowhere : (unsigned char *)at;
        syscall(SYS_close, fd);
    }
}

// Whether change n is made.
static inline int wrong_here(int n)
{
    wrong_reached[n] = 1;
    return wrong_made[n];
}

#endif
