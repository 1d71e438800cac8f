/* SPDX-License-Identifier: Apache-2.0
 * Files: the only caller of open, read, write and mmap in the library. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/error.h"

/* A file mapped for reading. `data` is NULL for an empty file. If the file shrinks while it is mapped,
 * reads past its new end give zeros and file_map_damaged turns true: the process does not die. */
struct file_map {
    const uint8_t *data;
    size_t size;
    int descriptor; /* open while `data` is not NULL: it tells the file's size of today */
    int slot;       /* in the table of the SIGBUS guard */
};

utter_status file_map_open(struct file_map *map, const char *path, utter_error *error);
/* Gives back the memory of whole pages between data and data + bytes, where they are in the map. */
void file_map_rest(const struct file_map *map, const void *data, size_t bytes);
bool file_map_damaged(const struct file_map *map);
void file_map_close(struct file_map *map); /* accepts a zeroed map */

/* The whole file as text with a final zero; UTTER_E_FILE when it is larger than `limit`, or no regular file. The
 * caller frees *text with memory_free. */
utter_status file_read(const char *path, size_t limit, char **text, size_t *bytes, utter_error *error);
/* For rooms that do not know where their files lie: file_read, or what reads files from inside another. */
typedef utter_status file_reader(
    const char *path, size_t limit, char **text, size_t *bytes, utter_error *error);
/* The same, also of a pipe or a device: waits for what comes. */
utter_status file_read_any(
    const char *path, size_t limit, char **text, size_t *bytes, utter_error *error);

/* What is said of a file with more than `limit` bytes. */
utter_status file_too_large(utter_error *error, const char *path, size_t limit);

/* The status and sentence for a system call on `path` that failed with `reason` (an errno): "path: cannot
 * DO: why (what to do)". */
utter_status file_error(utter_error *error, const char *path, const char *action, int reason);

bool file_exists(const char *path);
bool file_is_folder(const char *path);
/* Why this process cannot open the device at `path` to read and write it: an errno; 0: it can. */
int file_device_fault(const char *path);
/* Makes the folder, and those above it that there are not. */
utter_status file_make_folder(const char *path, utter_error *error);
/* "folder/name" in out[size]; UTTER_E_FILE when too long. */
utter_status file_join(
    char *out, size_t size, const char *folder, const char *name, utter_error *error);

/* A file that appears under its name only when it is complete: written without a name (where the system cannot, under
 * a hidden one), synced, renamed. `path` "-" is standard output, and what exists and is no regular file (a device, a
 * pipe) is written directly: no temporary. After a failed write, close fails too. */
struct file_out;
utter_status file_out_open(struct file_out **out, const char *path, utter_error *error);
utter_status file_out_write(struct file_out *out, const void *data, size_t bytes, utter_error *error);
/* Overwrites bytes already written (a header). Only where file_out_seekable. */
utter_status file_out_patch(
    struct file_out *out, uint64_t offset, const void *data, size_t bytes, utter_error *error);
bool file_out_seekable(const struct file_out *out);
utter_status file_out_close(struct file_out **out, utter_error *error); /* completes; frees */
void file_out_abort(struct file_out **out);                             /* drops; frees */
/* What the folder says of this name (an entry, or none any more) reaches the disk. Best effort: without it a power cut
 * may leave what was there before. */
void file_sync_entry(const char *path);
/* Removes what writers that were killed more than a minute ago have left in the folder. */
void file_out_sweep(const char *folder);

#endif
