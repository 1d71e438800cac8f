/* SPDX-License-Identifier: Apache-2.0
 * make_model SHAPE VARIANT OUT_FOLDER: a random checkpoint in the official format. The same arguments give the same
 * bytes on every machine and with any number of threads. The parts are in tools/maker/. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/maker/maker.h"

_Noreturn void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("make_model: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void *take(size_t n, size_t size)
{
    void *block = calloc(n, size);
    if (!block) {
        fail("out of memory");
    }
    return block;
}

const char *path_in(char *out, size_t size, const char *folder, const char *name)
{
    if ((size_t)snprintf(out, size, "%s/%s", folder, name) >= size) {
        fail("the path of %s is too long", name);
    }
    return out;
}

void make_folder(const char *path)
{
    char part[4096];
    if (strlen(path) >= sizeof part) {
        fail("the path is too long");
    }
    for (size_t i = 1; i <= strlen(path); i++) {
        if (path[i] == '/' || path[i] == '\0') {
            memcpy(part, path, i);
            part[i] = '\0';
            if (mkdir(part, 0777) != 0 && errno != EEXIST) {
                fail("cannot make %s: %s", part, strerror(errno));
            }
        }
    }
}

static void usage(void)
{
    printf(
        "make_model SHAPE VARIANT OUT_FOLDER [options]: a random checkpoint in the official format\n\n"
        "SHAPE    %s\nVARIANT  base, custom_voice, voice_design\n\n"
        "--seed N              other weights (default 1)\n"
        "--vocabulary FOLDER   tokenizer files (default tests/fixtures/vocabulary)\n"
        "--shards N            N files and an index instead of one model.safetensors\n"
        "--fine-tuned          one speaker and no speaker encoder (custom_voice)\n"
        "--hollow              all zeros, as holes in the files: shapes alone, in no time\n"
        "--threads N           (default: one for each core)\n"
        "--craft NAME          a crafted checkpoint, may be repeated:\n",
        shape_names());
    craft_list();
    printf("Another number for the shape:");
    shape_list_fields();
}

static long number(const char *option, const char *text, long low, long high)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < low || value > high) {
        fail("%s: \"%s\" is not a number from %ld to %ld", option, text, low, high);
    }
    return value;
}

int request_text_rows(const struct request *r)
{
    int needed =
        (r->vocabulary.n_tokens + 127) / 64 * 64; /* some rows beyond the vocabulary, as released */
    return needed > r->shape.text_rows ? needed : r->shape.text_rows;
}

static void read_option(struct request *r, const char *option, const char *value)
{
    int *field = shape_field(&r->shape, option);
    if (field) {
        *field = (int)number(option, value, 1, 1 << 20);
    } else if (strcmp(option, "--seed") == 0) {
        r->seed = (uint64_t)number(option, value, 0, 0x7fffffffffffffff);
    } else if (strcmp(option, "--vocabulary") == 0) {
        r->vocabulary.folder = value;
    } else if (strcmp(option, "--shards") == 0) {
        r->shards = (int)number(option, value, 1, 64);
    } else if (strcmp(option, "--threads") == 0) {
        r->threads = (int)number(option, value, 1, 1024);
    } else if (strcmp(option, "--craft") == 0) {
        if (r->n_crafts == MAX_CRAFTS) {
            fail("at most %d crafts", MAX_CRAFTS);
        }
        r->crafts[r->n_crafts++] = value;
    } else {
        fail("unknown option %s (see --help)", option);
    }
}

static void read_arguments(struct request *r, int argc, char **argv)
{
    if (argc < 4) {
        fail("wanted: make_model SHAPE VARIANT OUT_FOLDER [options] (see --help)");
    }
    const struct shape *shape = shape_find(argv[1]);
    if (!shape) {
        fail("there is no shape \"%s\" (%s)", argv[1], shape_names());
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *r = (struct request){.shape = *shape,
        .variant = N_VARIANTS,
        .folder = argv[3],
        .seed = 1,
        .shards = 1,
        .threads = cores > 0 ? (int)cores : 1,
        .vocabulary.folder = "tests/fixtures/vocabulary"};
    for (int i = 0; i < N_VARIANTS; i++) {
        r->variant = strcmp(argv[2], variant_name((enum variant)i)) == 0 ? (enum variant)i : r->variant;
    }
    if (r->variant == N_VARIANTS) {
        fail("there is no variant \"%s\" (base, custom_voice, voice_design)", argv[2]);
    }
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "--fine-tuned") == 0) {
            r->fine_tuned = true;
        } else if (strcmp(argv[i], "--hollow") == 0) {
            r->hollow = true;
        } else if (i + 1 < argc) {
            read_option(r, argv[i], argv[i + 1]);
            i++;
        } else {
            fail("%s: a value is missing, or the option is unknown (see --help)", argv[i]);
        }
    }
    if (r->fine_tuned && r->variant != VARIANT_CUSTOM_VOICE) {
        fail("--fine-tuned makes a custom_voice checkpoint");
    }
    shape_check(&r->shape);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        usage();
        return 0;
    }
    struct request request;
    read_arguments(&request, argc, argv);
    vocabulary_read(&request.vocabulary);

    char codec_folder[4096];
    path_in(codec_folder, sizeof codec_folder, request.folder, "speech_tokenizer");
    make_folder(codec_folder);
    struct plan model = {0}, codec = {0};
    plan_model(&model, &request);
    plan_codec(&codec, &request);
    for (int i = 0; i < request.n_crafts; i++) {
        craft_apply(request.crafts[i], &request, &model, &codec);
    }
    const int threads = request.hollow ? 0 : request.threads;
    writer_write(&model, request.folder, request.seed, request.shards, threads);
    writer_write(&codec, codec_folder, request.seed, 1, threads);
    vocabulary_copy(&request.vocabulary, request.folder);
    configs_write(&request);
    free(model.at);
    free(codec.at);
    return 0;
}
