/* SPDX-License-Identifier: Apache-2.0
 * Plans -> safetensors files, laid out as the official library does (names sorted, compact header padded with spaces
 * to 8 bytes). Threads take pieces of a million elements and write each where it belongs. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/numeric.h"
#include "tools/maker/maker.h"

enum { PIECE = 1 << 20 };

struct shard {
    char name[64];
    int fd;
    uint64_t data; /* where the tensors begin */
    uint64_t bytes;
};

struct job {
    const struct plan *plan;
    const struct shard *shards;
    uint64_t seed;
    size_t element;
    size_t *first_piece; /* [plan->n + 1]: pieces before tensor i */
    atomic_size_t next;
    atomic_bool failed;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct planned *)a)->name, ((const struct planned *)b)->name);
}

/* Tensors go to shards in order, each filled to its share of the bytes. */
static void lay_out(struct plan *plan, struct shard *shards, int n_shards, size_t element)
{
    uint64_t all = 0, before = 0;
    for (size_t i = 0; i < plan->n; i++) {
        all += (uint64_t)planned_count(&plan->at[i]) * element;
    }
    for (size_t i = 0; i < plan->n; i++) {
        struct planned *t = &plan->at[i];
        t->shard = (int)(before * (uint64_t)n_shards / all);
        t->offset = shards[t->shard].bytes;
        shards[t->shard].bytes += (uint64_t)planned_count(t) * element;
        before += (uint64_t)planned_count(t) * element;
    }
}

static void write_at(int fd, const void *data, size_t bytes, uint64_t at, atomic_bool *failed)
{
    const char *p = data;
    while (bytes > 0) {
        ssize_t n = pwrite(fd, p, bytes, (off_t)at);
        if (n <= 0) {
            atomic_store(failed, true);
            return;
        }
        p += n, at += (uint64_t)n, bytes -= (size_t)n;
    }
}

/* Length, JSON, spaces. */
static void write_header(const struct plan *plan, struct shard *shard, int index, size_t element)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) {
        fail("out of memory");
    }
    /* as released: the talker's file has this entry, the codec's has none */
    fputs(plan->bf16 ? "{\"__metadata__\":{\"format\":\"pt\"}" : "{", out);
    bool first = !plan->bf16;
    for (size_t i = 0; i < plan->n; i++) {
        const struct planned *t = &plan->at[i];
        if (t->shard != index) {
            continue;
        }
        fprintf(out, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", first ? "" : ",", t->name,
            plan->bf16 ? "BF16" : "F32");
        first = false;
        for (int d = 0; d < t->n_dims; d++) {
            fprintf(out, "%s%lld", d ? "," : "", (long long)t->dims[d]);
        }
        uint64_t end = t->offset + (uint64_t)planned_count(t) * element;
        fprintf(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)t->offset,
            (unsigned long long)end);
    }
    fprintf(out, "}");
    while (ftell(out) % 8) {
        fputc(' ', out);
    }
    if (fclose(out) != 0) {
        fail("out of memory");
    }
    uint8_t length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (uint8_t)((uint64_t)bytes >> 8 * i);
    }
    atomic_bool failed = false;
    write_at(shard->fd, length, 8, 0, &failed);
    write_at(shard->fd, text, bytes, 8, &failed);
    free(text);
    shard->data = 8 + bytes;
    if (failed) {
        fail("cannot write %s", shard->name);
    }
}

static void write_piece(
    struct job *job, const struct planned *t, int64_t begin, float *values, uint16_t *halves)
{
    int64_t n = planned_count(t) - begin;
    n = n < PIECE ? n : PIECE;
    values_make(t, job->seed, begin, n, values);
    const void *data = values;
    if (job->plan->bf16) {
        for (int64_t i = 0; i < n; i++) {
            halves[i] = bf16_from_float(values[i]);
        }
        data = halves;
    }
    const struct shard *shard = &job->shards[t->shard];
    uint64_t at = shard->data + t->offset + (uint64_t)begin * job->element;
    write_at(shard->fd, data, (size_t)n * job->element, at, &job->failed);
}

static void *worker(void *arg)
{
    struct job *job = arg;
    float *values = take(PIECE, sizeof *values);
    uint16_t *halves = take(PIECE, sizeof *halves);
    size_t n_pieces = job->first_piece[job->plan->n], tensor = 0;
    for (size_t p; (p = atomic_fetch_add(&job->next, 1)) < n_pieces && !atomic_load(&job->failed);) {
        while (job->first_piece[tensor + 1] <= p) {
            tensor++;
        }
        write_piece(job, &job->plan->at[tensor], (int64_t)(p - job->first_piece[tensor]) * PIECE,
            values, halves);
    }
    free(values);
    free(halves);
    return NULL;
}

static void write_values(
    const struct plan *plan, const struct shard *shards, uint64_t seed, size_t element, int threads)
{
    struct job job = {.plan = plan, .shards = shards, .seed = seed, .element = element};
    job.first_piece = take(plan->n + 1, sizeof *job.first_piece);
    for (size_t i = 0; i < plan->n; i++) {
        job.first_piece[i + 1] =
            job.first_piece[i] + (size_t)((planned_count(&plan->at[i]) + PIECE - 1) / PIECE);
    }
    pthread_t *others = take((size_t)threads, sizeof *others);
    int started = 0;
    while (started < threads - 1 && pthread_create(&others[started], NULL, worker, &job) == 0) {
        started++;
    }
    worker(&job);
    for (int i = 0; i < started; i++) {
        pthread_join(others[i], NULL);
    }
    free(others);
    free(job.first_piece);
    if (job.failed) {
        fail("cannot write the tensors (is the disk full?)");
    }
}

static void write_index(
    const struct plan *plan, const struct shard *shards, int n_shards, const char *folder)
{
    uint64_t bytes = 0;
    json_t *map = json_object();
    for (size_t i = 0; i < plan->n; i++) {
        json_object_set_new(map, plan->at[i].name, json_string(shards[plan->at[i].shard].name));
    }
    for (int i = 0; i < n_shards; i++) {
        bytes += shards[i].bytes;
    }
    json_t *index =
        json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)bytes, "weight_map", map);
    char path[4096];
    path_in(path, sizeof path, folder, "model.safetensors.index.json");
    if (!index || json_dump_file(index, path, JSON_INDENT(2)) != 0) {
        fail("cannot write %s", path);
    }
    json_decref(index);
}

void writer_write(struct plan *plan, const char *folder, uint64_t seed, int shards, int threads)
{
    size_t element = plan->bf16 ? 2 : 4;
    struct shard *files = take((size_t)shards, sizeof *files);
    qsort(plan->at, plan->n, sizeof *plan->at, by_name);
    lay_out(plan, files, shards, element);
    for (int i = 0; i < shards; i++) {
        char path[4096];
        snprintf(files[i].name, sizeof files[i].name, "model.safetensors");
        if (shards > 1) {
            snprintf(
                files[i].name, sizeof files[i].name, "model-%05d-of-%05d.safetensors", i + 1, shards);
        }
        path_in(path, sizeof path, folder, files[i].name);
        files[i].fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (files[i].fd < 0) {
            fail("cannot write %s", path);
        }
        write_header(plan, &files[i], i, element);
    }
    if (threads > 0) {
        write_values(plan, files, seed, element, threads);
    }
    for (int i = 0; i < shards; i++) {
        if (threads == 0 && ftruncate(files[i].fd, (off_t)(files[i].data + files[i].bytes)) != 0) {
            fail("cannot write %s/%s", folder, files[i].name);
        }
        if (close(files[i].fd) != 0) {
            fail("cannot write %s/%s", folder, files[i].name);
        }
    }
    if (shards > 1) {
        write_index(plan, files, shards, folder);
    }
    free(files);
}
