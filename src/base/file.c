/* SPDX-License-Identifier: Apache-2.0
 * Questions about paths, whole files as text, and the sentences for failed system calls. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/minmax.h"

static const char *advice_for(int reason)
{
    switch (reason) {
    case ENOSPC:
    case EDQUOT:
        return " (free some space, or choose another disk)";
    case EACCES:
    case EPERM:
        return " (check its permissions and those of its folder)";
    case EROFS:
        return " (choose a place that can be written)";
    case ENOENT:
    case ENOTDIR:
        return " (check the name)";
    case EMFILE:
    case ENFILE:
        return " (close some, or raise the limit: ulimit -n)";
    case EPIPE:
        return " (the reader has gone)";
    default:
        return "";
    }
}

/* What the caller can mend is UTTER_E_FILE; what the machine lacks is not. */
static utter_status status_for(int reason)
{
    switch (reason) {
    case ENOMEM:
        return UTTER_E_MEMORY;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EIO:
    case EPIPE:
    case EMFILE:
    case ENFILE:
        return UTTER_E_IO;
    default:
        return UTTER_E_FILE;
    }
}

utter_status file_error(utter_error *error, const char *path, const char *action, int reason)
{
    char name[1024];
    return error_set(error, status_for(reason), "%s: cannot %s: %s%s",
        error_quote(name, sizeof name, path, strlen(path)), action, strerror(reason),
        advice_for(reason));
}

utter_status file_too_large(utter_error *error, const char *path, size_t limit)
{
    char name[1024];
    return error_set(error, UTTER_E_FILE, "%s: too large: more than %zu bytes",
        error_quote(name, sizeof name, path, strlen(path)), limit);
}

/* Reads until the end or until `limit` + 1 bytes are there; *text ends in a zero, as memory_new left it. */
static utter_status read_all(int fd, const char *path, size_t expected, size_t limit, char **text,
    size_t *bytes, utter_error *error)
{
    size_t capacity = min(expected, limit) + 2; /* one byte too many shows, and the zero */
    char *buffer = memory_new(capacity, 1);
    size_t used = 0;
    while (buffer) {
        ssize_t n = read(fd, buffer + used, capacity - 1 - used);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            int reason = errno;
            memory_free(buffer);
            return file_error(error, path, "read", reason);
        }
        used += (size_t)n;
        if (n == 0 || used > limit) {
            break;
        }
        if (used == capacity - 1) { /* it has grown, or is a pipe that never told its size */
            size_t grown = capacity < limit / 2 ? capacity * 2 + 4096 : limit + 2;
            char *larger = memory_resize(buffer, capacity, grown, 1);
            if (!larger) {
                memory_free(buffer);
            }
            buffer = larger;
            capacity = grown;
        }
    }
    if (!buffer) {
        return error_memory(error, path);
    }
    if (used > limit) {
        memory_free(buffer);
        return file_too_large(error, path, limit);
    }
    *text = buffer;
    *bytes = used;
    return UTTER_OK;
}

static utter_status read_path(
    const char *path, bool any, size_t limit, char **text, size_t *bytes, utter_error *error)
{
    *text = NULL;
    *bytes = 0;
    /* Non-blocking: a pipe where a file should be must not hang us. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | (any ? 0 : O_NONBLOCK | O_NOCTTY));
    if (fd < 0) {
        int reason = errno;
        return file_error(error, path, "open", reason);
    }
    struct stat about;
    utter_status status = UTTER_OK;
    if (fstat(fd, &about) != 0) {
        status = file_error(error, path, "read", errno);
    } else if (!any && !S_ISREG(about.st_mode)) {
        status = S_ISDIR(about.st_mode)
                     ? file_error(error, path, "read", EISDIR)
                     : error_set(error, UTTER_E_FILE, "%s: is no regular file", path);
    } else if (limit > (SIZE_MAX >> 1)) {
        status = error_set(error, UTTER_E_ARGUMENT, "%s: no limit was given", path);
    } else {
        size_t expected = S_ISREG(about.st_mode) && about.st_size > 0 ? (size_t)about.st_size : 0;
        status = read_all(fd, path, expected, limit, text, bytes, error);
    }
    close(fd);
    return status;
}

utter_status file_read(const char *path, size_t limit, char **text, size_t *bytes, utter_error *error)
{
    return read_path(path, false, limit, text, bytes, error);
}

utter_status file_read_any(
    const char *path, size_t limit, char **text, size_t *bytes, utter_error *error)
{
    return read_path(path, true, limit, text, bytes, error);
}

bool file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

bool file_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

int file_device_fault(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return errno;
    }
    close(fd);
    return 0;
}

utter_status file_make_folder(const char *path, utter_error *error)
{
    char *part = memory_string(path);
    if (!part) {
        return error_memory(error, path);
    }
    bool made = true;
    for (char *slash = *part ? part : NULL; made && slash;) { /* each part of it, then all */
        slash = strchr(slash + 1, '/');
        if (slash) {
            *slash = 0;
        }
        made = mkdir(part, 0777) == 0 || errno == EEXIST;
        if (slash) {
            *slash = '/';
        }
    }
    int reason = errno;
    memory_free(part);
    if (made && !file_is_folder(path)) { /* what stands there is a file */
        made = false;
        reason = ENOTDIR;
    }
    return made ? UTTER_OK : file_error(error, path, "make the folder", reason);
}

utter_status file_join(char *out, size_t size, const char *folder, const char *name, utter_error *error)
{
    size_t n = strlen(folder);
    const char *between = n == 0 || folder[n - 1] == '/' ? "" : "/";
    int length = snprintf(out, size, "%s%s%s", folder, between, name);
    if (length < 0 || (size_t)length >= size) {
        char shown[256];
        return error_set(error, UTTER_E_FILE, "%s: the path is too long",
            error_quote(shown, sizeof shown, folder, n));
    }
    return UTTER_OK;
}
