/* SPDX-License-Identifier: Apache-2.0
 * Files being written. A regular file grows without a name in its target's folder, or under a hidden one where the
 * system cannot do that, and takes the target's name when it is complete, so that nobody ever sees half a file. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

enum { LEFT_S = 60 }; /* since a file that nobody writes any more has changed */
static const char hidden[] = ".utter-";
enum { HIDDEN_SIZE = sizeof hidden + 16 }; /* with 16 digits */

struct file_out {
    int fd;
    int failed; /* errno of the first failed write; 0: none */
    bool is_stdout;
    bool nameless;   /* the file has no name yet: who is killed now leaves nothing behind */
    char *path;      /* the target, symbolic links followed */
    char *temporary; /* its name until it takes that of the target; NULL: written directly */
};

static void file_out_free(struct file_out *o)
{
    if (o) {
        if (o->fd >= 0 && !o->is_stdout) {
            close(o->fd);
        }
        memory_free(o->path);
        memory_free(o->temporary);
        memory_free(o);
    }
}

/* The path by which a process reaches what it has open. */
enum { OWN_SIZE = 32 };
static const char *own_path(char own[OWN_SIZE], int fd)
{
    snprintf(own, OWN_SIZE, "/proc/self/fd/%d", fd);
    return own;
}

/* Length of the folder part of a path, with its slash; 0 when there is none. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Gives the nameless file a hidden name in the target's folder, or opens a new file under one: 0, or the errno. */
static int hidden_name(struct file_out *o, mode_t mode)
{
    size_t folder = folder_length(o->path);
    for (int attempt = 0; attempt < 16; attempt++) {
        uint64_t name;
        if (getentropy(&name, sizeof name) != 0) {
            return errno;
        }
        snprintf(o->temporary + folder, HIDDEN_SIZE, "%s%016llx", hidden, (unsigned long long)name);
        if (o->nameless) {
            char own[OWN_SIZE];
            o->nameless =
                linkat(AT_FDCWD, own_path(own, o->fd), AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) != 0;
        } else {
            o->fd = open(o->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        }
        if (!o->nameless && o->fd >= 0) {
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return errno;
}

/* Opens a new file in the target's folder, nameless where the system can do that and give it a name later. */
static utter_status temporary_open(struct file_out *o, mode_t mode, utter_error *error)
{
    size_t folder = folder_length(o->path);
    char own[OWN_SIZE];
    o->temporary = memory_new(folder + HIDDEN_SIZE, 1);
    if (!o->temporary) {
        return error_memory(error, "a file name");
    }
    memcpy(o->temporary, o->path, folder);
    o->fd = open(folder ? o->temporary : ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    o->nameless = o->fd >= 0 && access(own_path(own, o->fd), F_OK) == 0;
    if (o->fd >= 0 && !o->nameless) {
        close(o->fd);
        o->fd = -1;
    }
    int reason = o->nameless ? 0 : hidden_name(o, mode);
    if (reason) {
        memory_free(o->temporary); /* nothing to remove */
        o->temporary = NULL;
        return file_error(error, o->path, "create", reason);
    }
    (void)!flock(o->fd, LOCK_EX | LOCK_NB); /* ends with the process: file_out_sweep */
    return UTTER_OK;
}

/* Follows the links that the target's own name is, to where there is nothing yet too: a link keeps pointing where it
 * did, and what it points to is made or replaced. */
static utter_status follow_links(struct file_out *o, utter_error *error)
{
    char to[PATH_MAX];
    ssize_t n;
    for (int i = 0; (n = readlink(o->path, to, sizeof to - 1)) >= 0; i++) {
        size_t folder = to[0] == '/' ? 0 : folder_length(o->path);
        if (i == 40) {
            return file_error(error, o->path, "create", ELOOP);
        }
        char *followed = memory_new(folder + (size_t)n + 1, 1);
        if (!followed) {
            return error_memory(error, "a file name");
        }
        memcpy(followed, o->path, folder);
        memcpy(followed + folder, to, (size_t)n);
        memory_free(o->path);
        o->path = followed;
    }
    return UTTER_OK;
}

/* A target that exists and is not a regular file: bytes go straight to it. */
static utter_status direct_open(struct file_out *o, const struct stat *about, utter_error *error)
{
    if (S_ISDIR(about->st_mode)) {
        return error_set(error, UTTER_E_FILE, "%s: is a folder (give a file name)", o->path);
    }
    o->fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return o->fd < 0 ? file_error(error, o->path, "write", errno) : UTTER_OK;
}

static utter_status target_open(struct file_out *o, utter_error *error)
{
    struct stat about;
    bool is_there = stat(o->path, &about) == 0;
    if (is_there && !S_ISREG(about.st_mode)) {
        return direct_open(o, &about, error);
    }
    utter_status status = follow_links(o, error);
    if (status != UTTER_OK) {
        return status;
    }
    if (is_there && access(o->path, W_OK) != 0) {
        return file_error(error, o->path, "write", errno);
    }
    status = temporary_open(o, 0666, error);
    if (status == UTTER_OK && is_there) {
        (void)!fchmod(o->fd, about.st_mode & 0777); /* else it has the usual ones */
    }
    return status;
}

utter_status file_out_open(struct file_out **out, const char *path, utter_error *error)
{
    *out = NULL;
    struct file_out *o = memory_new(1, sizeof *o);
    if (!o) {
        return error_memory(error, "a file");
    }
    o->fd = -1;
    o->is_stdout = strcmp(path, "-") == 0;
    o->path = memory_string(o->is_stdout ? "standard output" : path);
    utter_status status;
    if (!o->path) {
        status = error_memory(error, "a file name");
    } else if (o->is_stdout) {
        o->fd = STDOUT_FILENO;
        status = UTTER_OK;
    } else {
        status = target_open(o, error);
    }
    if (status != UTTER_OK) {
        file_out_free(o);
        return status;
    }
    *out = o;
    return UTTER_OK;
}

static utter_status write_failed(struct file_out *o, int reason, utter_error *error)
{
    if (!o->failed) {
        o->failed = reason;
    }
    file_error(error, o->path, "write", reason);
    if (error) {
        error->code = UTTER_E_IO;
    }
    return UTTER_E_IO;
}

/* Waits until a non-blocking descriptor takes bytes again. */
static void wait_writable(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLOUT};
    poll(&wanted, 1, -1);
}

utter_status file_out_write(struct file_out *o, const void *data, size_t bytes, utter_error *error)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = write(o->fd, at, bytes);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            wait_writable(o->fd);
        } else if (n == 0 || errno != EINTR) {
            return write_failed(o, n == 0 ? EIO : errno, error);
        }
    }
    return UTTER_OK;
}

utter_status file_out_patch(
    struct file_out *o, uint64_t offset, const void *data, size_t bytes, utter_error *error)
{
    struct stat about;
    if (!file_out_seekable(o) || fstat(o->fd, &about) != 0 || offset > (uint64_t)about.st_size ||
        bytes > (uint64_t)about.st_size - offset) {
        return error_set(
            error, UTTER_E_INTERNAL, "%s: cannot overwrite bytes that were never written", o->path);
    }
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = pwrite(o->fd, at, bytes, (off_t)offset);
        if (n > 0) {
            at += n;
            offset += (uint64_t)n;
            bytes -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            return write_failed(o, n == 0 ? EIO : errno, error);
        }
    }
    return UTTER_OK;
}

bool file_out_seekable(const struct file_out *o)
{
    return o->temporary != NULL;
}

void file_sync_entry(const char *path)
{
    char folder[PATH_MAX];
    size_t n = folder_length(path);
    if (n >= sizeof folder) {
        return;
    }
    memcpy(folder, n ? path : ".", n ? n : 1);
    folder[n ? n : 1] = 0;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* Syncs, names, closes and renames; errno of what failed, or 0. */
static int file_out_complete(struct file_out *o)
{
    if (o->failed) {
        return o->failed;
    }
    if (o->temporary && fsync(o->fd) != 0) {
        return errno;
    }
    int reason = o->nameless ? hidden_name(o, 0) : 0;
    if (reason) {
        return reason;
    }
    int fd = o->fd;
    o->fd = -1;
    if (!o->is_stdout && close(fd) != 0 && errno != EINTR) {
        return errno;
    }
    if (o->temporary && rename(o->temporary, o->path) != 0) {
        return errno;
    }
    return 0;
}

utter_status file_out_close(struct file_out **out, utter_error *error)
{
    struct file_out *o = *out;
    *out = NULL;
    if (!o) {
        return UTTER_OK;
    }
    utter_status status = UTTER_OK;
    int reason = file_out_complete(o);
    if (reason) {
        status = write_failed(o, reason, error);
        if (o->temporary && !o->nameless) {
            unlink(o->temporary);
        }
    } else if (o->temporary) {
        file_sync_entry(o->path);
    }
    file_out_free(o);
    return status;
}

void file_out_abort(struct file_out **out)
{
    struct file_out *o = *out;
    *out = NULL;
    if (o && o->temporary && !o->nameless) {
        unlink(o->temporary);
    }
    file_out_free(o);
}

/* Whether its writer is gone. It holds the lock but for a moment, after it was made and before it is renamed. */
static bool is_left(int folder, const char *name)
{
    struct stat about;
    const char *digits = name + sizeof hidden - 1;
    if (strncmp(name, hidden, sizeof hidden - 1) != 0 || strlen(digits) != 16 ||
        strspn(digits, "0123456789abcdef") != 16) {
        return false;
    }
    int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    bool is = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
              time(NULL) - about.st_mtime > LEFT_S && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is;
}

void file_out_sweep(const char *folder)
{
    DIR *d = opendir(folder);
    for (const struct dirent *entry; d && (entry = readdir(d));) {
        if (is_left(dirfd(d), entry->d_name)) {
            unlinkat(dirfd(d), entry->d_name, 0);
        }
    }
    if (d) {
        closedir(d);
    }
}
