/* SPDX-License-Identifier: Apache-2.0
 * Kinds of recordings that libsndfile does not read, by their first bytes; ffmpeg as a process of its own. */
#include "cli/voice/readable.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/report.h"

/* m4a, mp4 and 3gp; webm and mka; AAC; AMR; wma. */
static bool is_for_ffmpeg(const char *path)
{
    static const struct {
        int at, n;
        const char *bytes;
    } heads[] = {{4, 4, "ftyp"}, {0, 4, "\x1a\x45\xdf\xa3"}, {0, 4, "ADIF"}, {0, 2, "\xff\xf1"},
        {0, 2, "\xff\xf9"}, {0, 5, "#!AMR"}, {0, 4, "\x30\x26\xb2\x75"}};
    char head[8] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool known = false, whole = file >= 0 && read(file, head, sizeof head) == (ssize_t)sizeof head;
    for (size_t i = 0; whole && i < sizeof heads / sizeof *heads; i++) {
        known = known || memcmp(head + heads[i].at, heads[i].bytes, (size_t)heads[i].n) == 0;
    }
    if (file >= 0) {
        close(file);
    }
    return known;
}

/* Its exit status; 127 where there is none. */
static int run_ffmpeg(const char *from, const char *to)
{
    /* As a file of this name, whatever the name looks like; sound only, and nothing is asked. */
    char source[4200];
    snprintf(source, sizeof source, "file:%s", from);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        execlp("ffmpeg", "ffmpeg", "-nostdin", "-v", "error", "-protocol_whitelist", "file", "-i",
            source, "-vn", "-map_metadata", "-1", "-c:a", "pcm_s16le", "-f", "wav", to, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0) {
        if (interrupt_signal()) { /* that was sent to us alone, perhaps */
            kill(child, SIGKILL);
        }
    }
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

int readable_open(struct readable *r, const char *path)
{
    *r = (struct readable){.path = path};
    if (!is_for_ffmpeg(path)) {
        return 0;
    }
    const char *place = getenv("TMPDIR"), *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if ((size_t)snprintf(r->folder, sizeof r->folder, "%s/utter-XXXXXX", place ? place : "/tmp") >=
            sizeof r->folder ||
        !mkdtemp(r->folder)) {
        r->folder[0] = 0;
        return fail(1, "no folder for what ffmpeg makes of %s (TMPDIR says where)", path);
    }
    /* The name goes into the voice. */
    snprintf(r->made, sizeof r->made, "%s/%.200s.wav", r->folder, name);
    int status = run_ffmpeg(path, r->made);
    if (status == 0) {
        r->path = r->made;
        return 0;
    }
    readable_close(r);
    r->path = path;
    return interrupt_signal() ? fail(128 + interrupt_signal(), "interrupted: nothing was written")
           : status == 127    ? 0
                              : fail(1, "%s: ffmpeg finds no sound in it", path);
}

void readable_name_given(const struct readable *r, const char *given, utter_error *error)
{
    size_t n = strlen(r->path);
    utter_error said = *error;
    if (r->path == r->made && strncmp(said.text, r->made, n) == 0) {
        snprintf(error->text, sizeof error->text, "%.2000s%.2000s", given, said.text + n);
    }
}

void readable_close(struct readable *r)
{
    if (r->folder[0]) {
        unlink(r->made);
        rmdir(r->folder);
        r->folder[0] = 0;
    }
}
