/* SPDX-License-Identifier: Apache-2.0
 * Starts this program again, with the signals and files of a fresh one. */
#include "server/loop/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

pid_t spawn_program(char *const *arguments, int socket, int error_pipe)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    pid_t pid = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (error_pipe >= 0) {
        posix_spawn_file_actions_adddup2(&actions, error_pipe, STDERR_FILENO);
    }
    if (socket >= 0) {
        posix_spawn_file_actions_adddup2(&actions, socket, SPAWN_SOCKET);
    }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    sigemptyset(&none);
    sigfillset(&usual);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int fault = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    errno = fault;
    return fault ? -1 : pid;
}

/* A signal for the process is its first thread's to take, which at idle priority may wait for a core while others of it
 * run on: so each is told. Going on takes back what of that is still due. */
bool spawn_still(pid_t pid, bool still)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = still ? opendir(path) : NULL;
    for (const struct dirent *e; threads && (e = readdir(threads));) {
        const long id = strtol(e->d_name, NULL, 10);
        if (id > 0) {
            syscall(SYS_tgkill, pid, id, SIGSTOP);
        }
    }
    if (threads) {
        closedir(threads);
    }
    return kill(pid, still ? SIGSTOP : SIGCONT) == 0;
}
