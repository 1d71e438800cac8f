/* SPDX-License-Identifier: Apache-2.0
 * A recording becomes a voice in a process of its own, with limits: what a hostile sound file does, it does there. */
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/tables/nearest.h"
#include "server/cage/cage.h"
#include "server/loop/account.h"
#include "server/loop/log.h"
#include "server/loop/spawn.h"
#include "server/protocol/websocket.h"
#include "server/speech/aliases.h"
#include "server/speech/voices_parts.h"

enum {
    MAX_UPLOADS = 2,
    CHILD_CPU_S = 120,
    CHILD_WALL_S = 300,
    MAX_SECONDS = 30,
    MAX_NAME = 100,
    MAX_TRANSCRIPT = 4096 /* bytes */
};

static const char sound_ending[] = ".sound", told_ending[] = ".json";

struct upload {
    TAILQ_ENTRY(upload) entry;
    pid_t pid;
    int error_pipe;
    bool once;
    char base[300]; /* of what it works with: BASE.sound, BASE.json (what was said), BASE.voice */
    char out[4096 +
             80]; /* the voice, where it is kept; for one request BASE.voice; for a store beside BASE */
    voices_done *done; /* NULL: nobody waits */
    void *user;
};

static void base_path(char *out, size_t size, const char *base, const char *ending)
{
    snprintf(out, size, "%s%s", base, ending);
}

static void drop(const struct upload *u, const char *ending)
{
    char path[sizeof u->base + 8];
    base_path(path, sizeof path, u->base, ending);
    unlink(path);
}

static void upload_free(struct server *s, struct upload *u)
{
    if (!u->once) { /* its process may have been killed as it wrote, now or earlier */
        file_out_sweep(s->voices->folder);
        drop(u, VOICE_ENDING);
    }
    TAILQ_REMOVE(&s->voices->uploads, u, entry);
    s->voices->n_uploads--;
    drop(u, sound_ending);
    drop(u, told_ending);
    close(u->error_pipe);
    memory_free(u);
}

/* A voice that is kept is written whole or not at all: at its place there may be the one that it was to replace. What
 * lies where it works is nobody's. */
static void drop_made(const struct upload *u)
{
    size_t folder = (size_t)(strrchr(u->base, '/') + 1 - u->base);
    if (strncmp(u->out, u->base, folder) == 0) {
        unlink(u->out);
        told_sweep(u->out);
    }
}

void voices_end_uploads(struct server *s)
{
    for (struct upload *u; (u = TAILQ_FIRST(&s->voices->uploads));) {
        kill(u->pid, SIGKILL);
        waitpid(u->pid, NULL, 0);
        drop_made(u);
        upload_free(s, u);
    }
}

void voices_abandon(struct server *s, void *user)
{
    struct upload *u;
    TAILQ_FOREACH(u, &s->voices->uploads, entry)
    {
        if (u->user == user) {
            u->done = NULL;
        }
    }
    voices_store_abandon(s, user);
}

/* A file name that no name from outside can bend: letters and digits of it, and its hash. */
static void file_name(char *out, size_t size, const char *name)
{
    struct sha256_ctx sha;
    uint8_t digest[8];
    char plain[25];
    size_t n = 0;
    sha256_init(&sha);
    for (const char *c = name; *c; c++) {
        char low = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        sha256_update(&sha, 1, (const uint8_t *)&low);
        if (n < sizeof plain - 1 && ((low >= 'a' && low <= 'z') || (low >= '0' && low <= '9'))) {
            plain[n++] = low;
        }
    }
    plain[n] = 0;
    sha256_digest(&sha, sizeof digest, digest);
    snprintf(out, size, "%s-%02x%02x%02x%02x%02x%02x", n ? plain : "voice", digest[0], digest[1],
        digest[2], digest[3], digest[4], digest[5]);
}

static bool check_name(const char *name, struct refusal *r)
{
    if (!name || !*name || strlen(name) > MAX_NAME || name[0] == '.' || strpbrk(name, "/\\") ||
        !websocket_is_utf8((const uint8_t *)name, strlen(name))) {
        return refuse(r, 400, "name",
            "\"name\" must be 1 to %d bytes of UTF-8 that do not begin with a dot, without / and \\",
            MAX_NAME);
    }
    /* Whatever an error would have to quote: controls, and marks that turn the direction or the line. */
    char shown[4 * MAX_NAME];
    if (strcmp(error_quote(shown, sizeof shown, name, strlen(name)), name) != 0) {
        return refuse(r, 400, "name", "\"name\" must not hold characters that cannot be seen");
    }
    if (alias_preset(name, &name, 1)) {
        return refuse(
            r, 409, "name", "'%.80s' is a name of OpenAI's, which stands for a voice already", name);
    }
    return true;
}

static void write_path(const struct server *s, char *out, size_t size, const char *name)
{
    char base[64];
    file_name(base, sizeof base, name);
    snprintf(out, size, "%s/%s" VOICE_ENDING, s->voices->folder, base);
}

/* Where the voice is made: at its place, or on its way into a store, from where it comes there. */
static void made_path(const struct server *s, char *out, size_t size, const char *name)
{
    char base[64];
    file_name(base, sizeof base, name);
    snprintf(out, size, "%s/%s" VOICE_ENDING,
        s->voices->store ? s->voices->temporary : s->voices->folder, base);
}

static bool is_being_made(const struct server *s, const char *name)
{
    char path[sizeof((struct upload *)0)->out];
    const struct upload *u = TAILQ_FIRST(&s->voices->uploads);
    made_path(s, path, sizeof path, name);
    while (u && strcmp(u->out, path) != 0) {
        u = TAILQ_NEXT(u, entry);
    }
    return u != NULL || voices_store_is_putting(s, path);
}

/* Names are hashed to file names, and two may be made to meet. */
static bool place_is_anothers(const struct server *s, const char *name)
{
    char path[sizeof((struct upload *)0)->out];
    const struct voice_entry *v;
    write_path(s, path, sizeof path, name);
    TAILQ_FOREACH(v, &s->voices->entries, entry)
    {
        if (strcmp(v->file, path) == 0) {
            return !names_same(v->name, name);
        }
    }
    return false;
}

/* Whose a voice is that is there already: only who has uploaded it may put another in its place. */
static bool check_name_is_free(struct server *s, const struct voices_upload *v, struct refusal *r)
{
    const struct voice_entry *old = voices_entry(s, v->name);
    if (old && !v->overwrite) {
        return refuse(
            r, 409, "name", "there is a voice '%.80s' (send overwrite=true to replace it)", v->name);
    }
    if (old && !voices_may_change(old, v->account, r)) {
        return false;
    }
    if (place_is_anothers(s, v->name)) {
        return refuse(r, 409, "name",
            "the file of '%.80s' would be another voice's (choose another name)", v->name);
    }
    return !is_being_made(s, v->name) ||
           refuse(
               r, 409, "name", "a voice '%.80s' is being made (ask again when it is there)", v->name);
}

/* Of the request that the recording came with. */
static const char *field_of(bool once)
{
    return once ? "ref_audio" : "audio_sample";
}

static bool check_upload(struct server *s, const struct voices_upload *v, struct refusal *r)
{
    struct voices *all = s->voices;
    if (!v->once && !check_name(v->name, r)) {
        return false;
    }
    if (v->sound_bytes == 0 || v->sound_bytes > LIMIT_UPLOAD) {
        return refuse(r, v->sound_bytes ? 413 : 400, field_of(v->once),
            "the recording must be 1 byte to %d MiB", LIMIT_UPLOAD >> 20);
    }
    if (v->transcript && strlen(v->transcript) > MAX_TRANSCRIPT) {
        return refuse(r, 400, "ref_text", "\"ref_text\" must be at most %d bytes", MAX_TRANSCRIPT);
    }
    if (strcmp(s->ready.kind_name, "base") != 0) {
        return refuse(r, 400, NULL, "only a base model can clone a voice, the one served here is %s",
            s->ready.kind_name);
    }
    if (!v->once && !all->folder[0]) {
        return refuse(r, 403, NULL, "this server keeps no voices (start it with --voices DIR)");
    }
    if (!v->once && !check_name_is_free(s, v, r)) {
        return false;
    }
    if (!v->once && all->n >= LIMIT_VOICES && !voices_entry(s, v->name)) {
        return refuse(r, 507, NULL, "there are %d voices, more are not kept", all->n);
    }
    if (all->n_uploads >= MAX_UPLOADS) {
        refuse(r, 503, NULL, "other recordings are being worked on");
        r->retry_ms = 3000;
        return false;
    }
    return true;
}

static bool write_file(const char *path, const void *data, size_t n)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const char *at = data;
    ssize_t put = 0;
    while (file >= 0 && n > 0 && (put = write(file, at, n)) > 0) {
        at += put;
        n -= (size_t)put;
    }
    return file >= 0 && close(file) == 0 && n == 0;
}

/* What the child is told of the voice: its name and its words, each with the zero at its end. In a pipe, because
 * everybody on the machine can read the arguments of a process. Both fit into any pipe. Returns its read end, or -1. */
static int tell_child(const char *name, const char *transcript)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    ssize_t n = (ssize_t)strlen(name) + 1, m = (ssize_t)strlen(transcript) + 1;
    bool good = write(ends[1], name, (size_t)n) == n && write(ends[1], transcript, (size_t)m) == m;
    close(ends[1]);
    if (!good) {
        close(ends[0]);
    }
    return good ? ends[0] : -1;
}

static bool start_child(struct server *s, struct upload *u, const struct voices_upload *v)
{
    int ends[2];
    char model[4096];
    char program[] = "utter", command[] = "serve-clone";
    snprintf(model, sizeof model, "%s", s->options->model);
    char cage[] = "caged", open[] = "open";
    char *arguments[] = {
        program, command, model, u->base, u->out, s->options->no_cage ? open : cage, NULL};
    int told = tell_child(v->name && !v->once ? v->name : "once", v->transcript ? v->transcript : "");
    if (told < 0 || pipe2(ends, O_CLOEXEC) != 0) {
        close(told);
        return false;
    }
    u->pid = spawn_program(arguments, told, ends[1]);
    close(told);
    close(ends[1]);
    u->error_pipe = ends[0];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (u->pid <= 0) {
        close(ends[0]);
    }
    return u->pid > 0;
}

/* What the process works with: the recording, and what was said of the voice. False with errno. */
static bool write_work(const struct upload *u, const struct voices_upload *v)
{
    char path[sizeof u->base + 8], owner[ACCOUNT_MARK] = "";
    base_path(path, sizeof path, u->base, sound_ending);
    if (!write_file(path, v->sound, v->sound_bytes)) {
        return false;
    }
    if (v->account && !v->once) {
        account_mark(owner, v->account);
    }
    json_t *told = json_pack("{s:s*,s:s*,s:s*}", "speaker_description", v->description, "consent",
        v->consent, "owner", owner[0] ? owner : NULL);
    char *text = json_text_write(told, JSON_COMPACT);
    base_path(path, sizeof path, u->base, told_ending);
    errno = ENOMEM;
    bool good = text && (json_object_size(told) == 0 || write_file(path, text, strlen(text)));
    memory_plain_free(text);
    json_decref(told);
    return good;
}

/* Its name is composed. */
static bool create(struct server *s, const struct voices_upload *v, voices_done *done, void *user,
    struct refusal *refusal)
{
    static unsigned n_made;
    if (!check_upload(s, v, refusal)) {
        return false;
    }
    struct upload *u = memory_new(1, sizeof *u);
    if (!u) {
        return refuse(refusal, 503, NULL, "out of memory");
    }
    snprintf(u->base, sizeof u->base, "%s/%u", s->voices->temporary, ++n_made);
    if (v->once) {
        base_path(u->out, sizeof u->out, u->base, VOICE_ENDING);
    } else {
        made_path(s, u->out, sizeof u->out, v->name);
    }
    u->once = v->once;
    u->done = done;
    u->user = user;
    if (!write_work(u, v) || !start_child(s, u, v)) {
        int reason = errno;
        drop(u, sound_ending);
        drop(u, told_ending);
        memory_free(u);
        return refuse(refusal, 500, NULL, "the recording cannot be worked on: %s", strerror(reason));
    }
    TAILQ_INSERT_TAIL(&s->voices->uploads, u, entry);
    s->voices->n_uploads++;
    return true;
}

bool voices_create(struct server *s, const struct voices_upload *upload, voices_done *done, void *user,
    struct refusal *refusal)
{
    char name[NAME_COMPOSED];
    struct voices_upload composed = *upload;
    composed.name = upload->name ? name_composed(name, upload->name) : NULL;
    return create(s, &composed, done, user, refusal);
}

void voices_kept(struct server *s, const char *file, voices_done *done, void *user)
{
    utter_error error = {.text = ""};
    struct refusal r;
    struct voice_entry *v = voice_entry_read(file, &error);
    if (!v) {
        refuse(&r, 500, NULL, "the voice cannot be read: %s", error.text);
        if (done) {
            done(user, NULL, NULL, &r);
        }
        return;
    }
    const struct voice_entry *old = voices_entry(s, v->name);
    if (old && strcmp(old->file, v->file) != 0) { /* made elsewhere, of another file name */
        if (s->voices->store) {
            voices_store_drop(s, old->file, NULL, NULL);
        } else {
            voices_unlink(old);
        }
    }
    voices_insert(s, v);
    log_event(s, "voice_made", json_pack("{s:s}", "name", v->name));
    if (done) {
        done(user, voices_entry_json(v), file, NULL);
    }
}

static void upload_good(struct server *s, struct upload *u)
{
    if (!u->once && s->voices->store) {
        voices_store_put(s, u->out, u->done, u->user);
    } else if (!u->once) {
        voices_kept(s, u->out, u->done, u->user);
    } else if (u->done) {
        u->done(u->user, json_null(), u->out, NULL);
    } else {
        unlink(u->out);
    }
}

void voices_reap(struct server *s, pid_t pid, int status)
{
    struct upload *u;
    TAILQ_FOREACH(u, &s->voices->uploads, entry)
    {
        if (u->pid == pid) {
            break;
        }
    }
    if (!u) {
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        upload_good(s, u);
    } else {
        char text[1024] = "it could not be worked on";
        ssize_t n = read(u->error_pipe, text, sizeof text - 1);
        text[n > 0 ? (size_t)n : strlen(text)] = 0;
        text[strcspn(text, "\n")] = 0;
        struct refusal r;
        if (WIFSIGNALED(status) || WEXITSTATUS(status) == 1) {
            refuse(&r, 400, field_of(u->once), "the recording: %s", text);
        } else {
            refuse(&r, 500, NULL, "the voice cannot be made: %s", text);
        }
        drop_made(u);
        if (u->done) {
            u->done(u->user, NULL, NULL, &r);
        }
    }
    upload_free(s, u);
    server_check_drained(s);
}

static void limit(int what, rlim_t value)
{
    struct rlimit limits = {value, value};
    setrlimit((__rlimit_resource_t)what, &limits);
}

/* The pipe to the server holds one sentence, ours; decoders complain on standard error at any length, and a full pipe
 * that nobody reads yet would hold this process up for ever. So theirs goes nowhere. */
static FILE *take_standard_error(void)
{
    int told = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3),
        nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, STDERR_FILENO);
        close(nowhere);
    }
    return told >= 0 ? fdopen(told, "w") : NULL;
}

/* Reads what tell_child has written; false: it is not there. *transcript points behind the name. */
static bool hear_parent(char *text, size_t size, const char **transcript)
{
    size_t n = 0;
    ssize_t got;
    while (n < size && (got = read(SPAWN_SOCKET, text + n, size - n)) > 0) {
        n += (size_t)got;
    }
    close(SPAWN_SOCKET);
    size_t name = strnlen(text, n);
    *transcript = text + name + 1;
    return name + 1 < n && text[n - 1] == 0;
}

/* BASE.voice is the place of a voice of one request. */
static utter_status keep_voice(
    const utter_voice *voice, const char *base, const char *out, utter_error *error)
{
    char made[4096], told[4096];
    base_path(made, sizeof made, base, VOICE_ENDING);
    base_path(told, sizeof told, base, told_ending);
    return strcmp(made, out) == 0 ? utter_voice_save(voice, out, error)
                                  : told_save(voice, out, file_exists(told) ? told : NULL, made, error);
}

/* The client knows no path of this machine, and only the recording is its own: the sentence behind the name of `file`,
 * or of one beside it. */
static const char *without_path(const char *text, const char *file)
{
    size_t n = strlen(file);
    const char *slash = strrchr(file, '/');
    if (strncmp(text, file, n) != 0 && slash && strncmp(text, file, (size_t)(slash - file)) == 0) {
        const char *name_end = strstr(text, ": ");
        return name_end ? name_end + 2 : text;
    }
    return strncmp(text, file, n) == 0 ? text + n + strspn(text + n, ": ") : text;
}

/* The recording and what becomes of it lie in one folder, or its voice in the folder of voices. */
static void enter_cage(const char *model_path, const char *base, const char *out)
{
    char work[4096], voices[4096];
    snprintf(work, sizeof work, "%.*s", (int)(strrchr(base, '/') - base), base);
    snprintf(voices, sizeof voices, "%.*s", (int)(strrchr(out, '/') - out), out);
    const struct cage_files files = {.reads = {model_path}, .writes = {work, voices}};
    cage_files(&files);
}

int voices_child(char **arguments)
{
    char told_voice[MAX_NAME + 1 + MAX_TRANSCRIPT + 1];
    const char *transcript;
    if (!hear_parent(told_voice, sizeof told_voice, &transcript)) {
        return 2;
    }
    const char *model_path = arguments[0], *base = arguments[1], *out = arguments[2];
    char sound[4096];
    base_path(sound, sizeof sound, base, sound_ending);
    utter_error error = {.text = ""};
    utter_model *model = NULL;
    utter_voice *voice = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    limit(RLIMIT_CPU, CHILD_CPU_S);
    const bool caged = strcmp(arguments[3], "caged") == 0;
    alarm(CHILD_WALL_S); /* also where it waits for something: it ends, and its place is free */
    FILE *told = take_standard_error();
    limit(RLIMIT_CORE, 0);
    setpriority(PRIO_PROCESS, 0, 10);
    utter_model_options options;
    utter_model_options_init(&options);
    options.device = "cpu"; /* the device is for those who speak */
    utter_clone_options clone;
    utter_clone_options_init(&clone);
    clone.name = told_voice;
    clone.transcript = *transcript ? transcript : NULL;
    clone.max_seconds = MAX_SECONDS;
    const char *file = model_path;
    if (caged) {
        enter_cage(model_path, base, out);
    }
    utter_status status = utter_model_open(&model, model_path, &options, &error);
    bool opened = status == UTTER_OK, cloned = false;
    if (opened) {
        file = sound;
        if (caged) {
            cage_calls();
        }
        status = utter_voice_clone(&voice, model, sound, &clone, NULL, &error);
        cloned = status == UTTER_OK;
    }
    if (cloned) {
        file = out;
        status = keep_voice(voice, base, out, &error);
    }
    utter_voice_free(&voice);
    utter_model_close(&model);
    if (status == UTTER_OK) {
        return 0;
    }
    /* Also as the voice is kept it may be about a file beside the recording. */
    fprintf(told ? told : stderr, "%s\n", without_path(without_path(error.text, file), sound));
    if (told) {
        fclose(told);
    }
    bool wrong = status == UTTER_E_ARGUMENT || status == UTTER_E_FILE || status == UTTER_E_MODEL;
    return opened && !cloned && wrong ? 1 : 2;
}
