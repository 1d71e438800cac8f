/* SPDX-License-Identifier: Apache-2.0
 * Golden files with one thing changed: what is said of a file that is broken, and which stages fail of a model that no
 * longer agrees with it, and in which words. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/golden.h"

#define EOS_FIRST "tests/golden/eos-first.safetensors"
#define BASE "tests/golden/tiny06-base.safetensors"

/* ---- Files with a change ---- */

/* In metadata a quote stands behind a backslash: ' is such a one, and ` a plain one. */
static void write_pattern(char *out, size_t size, const char *pattern)
{
    size_t n = 0;
    for (; *pattern; pattern++) {
        assert_true(n + 3 < size);
        if (*pattern == '\'') {
            out[n++] = '\\';
        }
        out[n++] = *pattern == '\'' || *pattern == '`' ? '"' : *pattern;
    }
    out[n] = 0;
}

/* A copy of a golden file, with the header's first `from` replaced. */
static const char *with_header(const char *golden, const char *from, const char *to)
{
    char a[256], b[256];
    size_t bytes;
    uint64_t n;
    char *data = support_read_file(golden, &bytes);
    assert_non_null(data);
    memcpy(&n, data, sizeof n);
    const char *rest = data + sizeof n + n;
    const size_t n_rest = bytes - sizeof n - (size_t)n;
    char *out = calloc(bytes + sizeof b, 1), *header = out + sizeof n;
    memcpy(header, data + sizeof n, (size_t)n);
    write_pattern(a, sizeof a, from);
    write_pattern(b, sizeof b, to);
    char *at = strstr(header, a);
    if (!at) {
        fail_msg("%s is not in %s", a, golden);
    }
    memmove(at + strlen(b), at + strlen(a), strlen(at + strlen(a)) + 1);
    memcpy(at, b, strlen(b));
    for (n = strlen(header); n % 8; n++) {
        header[n] = ' ';
    }
    memcpy(out, &n, sizeof n);
    memcpy(header + n, rest, n_rest);
    const char *path = support_path("changed.safetensors");
    support_write_file(path, out, sizeof n + (size_t)n + n_rest);
    free(data);
    free(out);
    return path;
}

/* A copy, with the 4 bytes at `index` of a tensor replaced. */
static const char *with_data(const char *golden, const char *tensor, size_t index, const void *value)
{
    struct tensor_set *set;
    size_t bytes;
    char *data = support_read_file(golden, &bytes);
    assert_int_equal(tensor_set_open_memory(&set, data, bytes, "golden", NULL), UTTER_OK);
    const struct tensor *t = tensor_set_find(set, tensor);
    assert_non_null(t);
    assert_true(4 * index < t->bytes);
    memcpy(data + ((const char *)t->data - data) + 4 * index, value, 4);
    tensor_set_close(&set);
    const char *path = support_path("changed.safetensors");
    support_write_file(path, data, bytes);
    free(data);
    return path;
}

static const char *with_code(const char *tensor, size_t index, int32_t value)
{
    return with_data(EOS_FIRST, tensor, index, &value);
}

/* ---- Files ---- */

static void a_case_is_read_as_it_stands(void **state)
{
    (void)state;
    struct golden g;
    struct golden_case c;
    assert_int_equal(golden_open(&g, EOS_FIRST, NULL), UTTER_OK);
    assert_string_equal(g.kind, "custom_voice");
    assert_int_equal(golden_count(&g), 2);
    assert_int_equal(golden_case(&g, 0, 16, &c, NULL), UTTER_OK);
    assert_string_equal(c.name, "two-frames-full");
    assert_string_equal(c.text, "Hello.");
    assert_string_equal(c.language, "english");
    assert_string_equal(c.speaker, "ryan");
    assert_true(!c.instruct && !c.is_decode && !c.is_clone && c.ends && !c.official_chunks);
    assert_true(c.text_bytes == 6 && c.layout == UTTER_LAYOUT_FULL && c.repetition_penalty == 1.05f);
    assert_true(c.max_frames == 12 && c.n_frames == 2 && c.n_samples == 3840 && c.stride == 97);
    assert_true(fabs(c.rms - 0.06064550416362786) < 1e-12);
    assert_true(
        c.ids && c.codes && c.margins && c.samples && c.strided && !c.samples_fp64 && !c.prompt);
    assert_ptr_equal(c.ids, golden_tensor(&g, "two-frames-full", "ids", -1));
    assert_null(golden_tensor(&g, "two-frames-full", "ids", 0));
    assert_int_equal(golden_case(&g, 1, 16, &c, NULL), UTTER_OK);
    assert_true(c.layout == UTTER_LAYOUT_STREAM && c.max_frames == 32);
    assert_int_equal(
        golden_case(&g, 1, 8, &c, NULL), UTTER_E_FILE); /* of a model with other codebooks */
    assert_int_equal(golden_case(&g, 2, 16, &c, NULL), UTTER_E_FILE);
    golden_close(&g);
    golden_close(&g);
    assert_int_equal(golden_open(&g, BASE, NULL), UTTER_OK);
    assert_int_equal(golden_case(&g, 0, 16, &c, NULL), UTTER_OK);
    assert_true(c.is_clone && !c.ends && c.reference && c.vector && !c.speaker);
    assert_int_equal(c.reference->dims[0], 20);
    assert_string_equal(c.transcript, "This is the voice that you shall speak with.");
    assert_ptr_equal(golden_tensor(&g, "activations", "talker.layer", 1),
        tensor_set_find(g.set, "activations/talker.layer.1"));
    assert_non_null(golden_tensor(&g, "activations", "talker.layer", 1));
    assert_int_equal(golden_case(&g, 1, 16, &c, NULL), UTTER_OK);
    assert_true(c.is_clone && !c.reference && !c.transcript);
    assert_int_equal(golden_case(&g, 31, 16, &c, NULL), UTTER_OK);
    assert_true(c.is_decode && !c.ids && !c.text && c.n_frames == 8);
    golden_close(&g);
}

static void what_is_no_golden_file_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *said;
    } cases[] = {
        {"`utter_golden`", "`utter_golded`", "not a golden file (tools/oracle/golden.py writes one)"},
        {"`cases`", "`casez`", "not a golden file"},
        {"`checkpoint`", "`checkpoins`", "not a golden file"},
        {"`utter_golden`:`1`", "`utter_golden`:`2`",
            "version 2 of the golden format (this program knows 1)"},
        {"`utter_golden`:`1`", "`utter_golden`:`11`", "version 11 of the golden format"},
        {"{'kind': 'custom_voice'", "{'kinD': 'custom_voice'", "kind"},
        {"{'kind': 'custom_voice'", "{'kind': 7", "kind"},
        {"{'kind': 'custom_voice'", "['kind'", "checkpoint of the golden file"},
        {"[{'name'", "[{'name': 1, 'name'x", "cases of the golden file"},
        {"`cases`:`[", "`cases`:`{'a':1}`,`b`:`[", "its cases are no list"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct golden g;
        utter_error error = {.text = ""};
        assert_int_equal(
            golden_open(&g, with_header(EOS_FIRST, cases[i].from, cases[i].to), &error), UTTER_E_FILE);
        if (!strstr(error.text, cases[i].said)) {
            fail_msg("\"%s\" is not in: %s", cases[i].said, error.text);
        }
        assert_true(!g.set && !g.cases && !g.kind && !g.files);
    }
    struct golden g;
    assert_int_equal(golden_open(&g, "/nowhere", NULL), UTTER_E_FILE);
}

/* One change a line, in the first case of a file. */
static const struct {
    const char *golden;
    const char *from, *to;
    bool shapes; /* it is its tensors that are wrong */
} BROKEN[] = {
    {EOS_FIRST, "'name': 'two-frames-full'", "'namE': 'two-frames-full'", false},
    {EOS_FIRST, "'kind': 'speak'", "'kinD': 'speak'", false},
    {EOS_FIRST, "'frames': 2", "'frames': -1", false},
    {EOS_FIRST, "'frames': 2", "'frames': 1048577", false},
    {EOS_FIRST, "'text': 'Hello.'", "'text': 7", false},
    {EOS_FIRST, "'layout': 'full'", "'layouT': 'full'", false},
    {EOS_FIRST, "'repetition_penalty': 1.05", "'repetition_penalty': 0", false},
    {EOS_FIRST, "'repetition_penalty': 1.05", "'repetition_penalty': 1001", false},
    {EOS_FIRST, "'max_frames': 12", "'max_frames': 0", false},
    {EOS_FIRST, "'max_frames': 12", "'max_frames': 1048577", false},
    {EOS_FIRST, "'finish': 'eos'", "'finisH': 'eos'", false},
    {EOS_FIRST, "{'n': 3840", "{'N': 3840", false},
    {EOS_FIRST, "{'n': 3840", "{'n': -1", false},
    {EOS_FIRST, "'stride': 97", "'stride': 0", false},
    {EOS_FIRST, "'rms': 0", "'rms': -1, 'r': 0", false},
    {EOS_FIRST, "'rule': 'whole'", "'rulE': 'whole'", false},
    {EOS_FIRST, "'frames': 2", "'frames': 3", true},
    {EOS_FIRST, "two-frames-full/codes", "two-frames-full/codez", true},
    {EOS_FIRST, "two-frames-full/ids", "two-frames-full/idz", true},
    {EOS_FIRST, "two-frames-full/margins", "two-frames-full/marginz", true},
    {EOS_FIRST, "two-frames-full/codes`:{`dtype`:`I32`,`shape`:[2,16]",
        "two-frames-full/codes`:{`dtype`:`I32`,`shape`:[1,32]", true},
    {EOS_FIRST, "two-frames-full/codes`:{`dtype`:`I32`,`shape`:[2,16]",
        "two-frames-full/codes`:{`dtype`:`I32`,`shape`:[2,4,4]", true},
    {EOS_FIRST, "two-frames-full/codes`:{`dtype`:`I32`", "two-frames-full/codes`:{`dtype`:`F32`", true},
    {EOS_FIRST, "two-frames-full/margins`:{`dtype`:`F32`,`shape`:[2,16]",
        "two-frames-full/margins`:{`dtype`:`F32`,`shape`:[16,2]", true},
    {EOS_FIRST, "two-frames-full/margins`:{`dtype`:`F32`", "two-frames-full/margins`:{`dtype`:`I32`",
        true},
    {EOS_FIRST, "two-frames-full/ids`:{`dtype`:`I32`", "two-frames-full/ids`:{`dtype`:`F32`", true},
    {EOS_FIRST, "two-frames-full/ids`:{`dtype`:`I32`,`shape`:[12]",
        "two-frames-full/ids`:{`dtype`:`I32`,`shape`:[3,4]", true},
    {EOS_FIRST, "two-frames-full/samples`:{`dtype`:`F32`", "two-frames-full/samples`:{`dtype`:`I32`",
        true},
    {EOS_FIRST, "two-frames-full/samples`:{`dtype`:`F32`,`shape`:[3840]",
        "two-frames-full/samples`:{`dtype`:`F32`,`shape`:[1,3840]", true},
    {EOS_FIRST, "two-frames-full/strided`:{`dtype`:`F32`", "two-frames-full/strided`:{`dtype`:`I32`",
        true},
    {"tests/golden/loud.safetensors", "decode-8/samples_fp64`:{`dtype`:`F32`",
        "decode-8/samples_fp64`:{`dtype`:`I32`", true},
    {"tests/golden/loud.safetensors", "decode-8/samples`", "decode-8/samplez`", true},
    {"tests/golden/loud.safetensors", "decode-8/strided_fp64`:{`dtype`:`F32`",
        "decode-8/strided_fp64`:{`dtype`:`I32`", true},
    {"tests/golden/loud.safetensors", "decode-8/strided`", "decode-8/stridez`", true},
    {"tests/golden/loud.safetensors", "decode-8/codes`", "decode-8/codez`", true},
    {BASE, "activations/x_vector", "activations/x_vectoz", true},
    {BASE, "activations/reference_codes", "activations/reference_codez", true},
    {BASE, "'transcript': 'This is", "'transcripT': 'This is", true},
    {BASE, "activations/reference_codes`:{`dtype`:`I32`,`shape`:[20,16]",
        "activations/reference_codes`:{`dtype`:`I32`,`shape`:[40,8]", true},
};

static void a_case_that_is_broken_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++) {
        struct golden g;
        struct golden_case c;
        char wanted[160];
        utter_error error = {.text = ""};
        assert_int_equal(
            golden_open(&g, with_header(BROKEN[i].golden, BROKEN[i].from, BROKEN[i].to), &error),
            UTTER_OK);
        if (golden_case(&g, 0, 16, &c, &error) != UTTER_E_FILE) {
            fail_msg("%s was taken", BROKEN[i].to);
        }
        snprintf(wanted, sizeof wanted,
            "golden case %s: its ids, codes, margins or samples are missing or misshapen",
            BROKEN[i].shapes ? c.name : "");
        assert_string_equal(error.text, BROKEN[i].shapes ? wanted : "golden file: case 0 is broken");
        golden_close(&g);
    }
}

/* Of the checkpoint's files each must have its bytes, the first and the last 64 kB of them hashed. */
static void files_are_compared_by_their_edges(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *other;
        size_t n_same, n_files;
    } cases[] = {
        {"'bytes': 2985", "'bytes': 2985", NULL, 3, 3},
        {"'bytes': 2985", "'bytes': 2986", "config.json", 2, 3},
        {"dd929a06fb381b08", "dd929a06fb381b09", "config.json", 2, 3},
        {"1a2ebd91d7bf9acc", "0a2ebd91d7bf9acc", "model.safetensors", 2, 3},
        {"'edges': 'dd9", "'edgeZ': 'dd9", "config.json", 2, 3},
        {"'config.json'", "'confiG.json'", "confiG.json", 2, 3},
        {"'files'", "'fileZ'", NULL, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct golden g;
        size_t n_files = 9;
        const char *other = "x";
        assert_int_equal(
            golden_open(&g, with_header(EOS_FIRST, cases[i].from, cases[i].to), NULL), UTTER_OK);
        assert_int_equal(
            golden_same_files(&g, "build/checkpoints/eos-first", &n_files, &other), cases[i].n_same);
        assert_int_equal(n_files, cases[i].n_files);
        assert_true(cases[i].other ? strcmp(other, cases[i].other) == 0 : !other);
        golden_close(&g);
    }
}

/* ---- Verification ---- */

static utter_model *model;
static char report[4096]; /* a line for each stage: its name, "fails" or "passes", its detail */
static int n_taps, n_taps_off;
static struct backend_ops ops;

static void note(void *user, const utter_check *check)
{
    size_t n = strlen(report);
    assert_ptr_equal(user, report);
    snprintf(report + n, sizeof report - n, "%s %s %s\n", check->stage,
        check->passed ? "passes" : "fails", check->detail);
    assert_true(
        check->passed == (check->limit == 1 ? check->value == 1 : check->value <= check->limit));
}

static void count_tap(struct backend *b, backend_tap_fn *fn, void *user)
{
    n_taps++;
    n_taps_off += !fn;
    cpu_backend.tap(b, fn, user);
}

static utter_status verify(const char *path, utter_error *error)
{
    report[0] = 0;
    n_taps = n_taps_off = 0;
    const utter_status status = utter_model_verify(model, path, note, report, error);
    assert_true(n_taps == 2 * n_taps_off && !model->engine.no_waiting);
    assert_true(engine_is_idle(&model->engine));
    return status;
}

static void open_for(const char *checkpoint)
{
    assert_int_equal(utter_model_open(&model, checkpoint, NULL, NULL), UTTER_OK);
    ops = *model->engine.context.ops;
    ops.tap = count_tap;
    model->engine.context.ops = &ops;
}

/* The stages that fail, a ";" behind each. */
static void check_failed(const char *path, const char *wanted)
{
    char failed[512] = "", lines[sizeof report];
    utter_error error = {.text = ""};
    verify(path, &error);
    assert_string_equal(error.text, "");
    strcpy(lines, report);
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
        char *end = strstr(line, " fails ");
        if (end) {
            *end = 0;
            strcat(failed, line);
            strcat(failed, ";");
        }
    }
    if (strcmp(failed, wanted) != 0) {
        fail_msg("%s fails, not %s, of\n%s", failed, wanted, report);
    }
}

static void check_said(const char *wanted)
{
    if (!strstr(report, wanted)) {
        fail_msg("\"%s\" is not in\n%s", wanted, report);
    }
}

static const char SAMPLES[] = "samples, largest;samples, rms;";

static void each_difference_is_told_where_it_is(void **state)
{
    (void)state;
    char wanted[256];
    open_for("build/checkpoints/eos-first");
    check_failed(EOS_FIRST, "");
    check_said(
        "checkpoint passes 3 of 3 files\ntokens passes 2 of 2 texts\ncodes passes 64 of 64 codes\n"
        "finish passes 2 of 2 cases\nstreamed = whole passes 2 of 2 cases\nsamples, largest passes 2 "
        "cases, ");
    check_failed(with_header(EOS_FIRST, "'bytes': 2985", "'bytes': 2986"), "checkpoint;");
    check_said("checkpoint fails 2 of 3 files, first in another checkpoint than the golden file's: "
               "config.json\n");
    check_failed(with_code("two-frames-full/ids", 3, 1), "tokens;");
    check_said("tokens fails 1 of 2 texts, first in two-frames-full: other ids\n");
    check_failed(with_header(EOS_FIRST, "'finish': 'eos'", "'finish': 'max_frames'"), "finish;");
    check_said("finish fails 1 of 2 cases, first in two-frames-full: eos\n");
    check_failed(with_header(EOS_FIRST, "'max_frames': 12", "'max_frames': 1"), "codes;finish;");
    check_said("codes fails 48 of 64 codes, first in two-frames-full: the stream ended early\n");
    check_said("finish fails 1 of 2 cases, first in two-frames-full: max_frames\n");
    check_said("streamed = whole passes 1 of 1 cases\n"); /* the other one is not there whole */
    struct golden g;
    struct golden_case c;
    assert_int_equal(golden_open(&g, EOS_FIRST, NULL), UTTER_OK);
    assert_int_equal(golden_case(&g, 0, 16, &c, NULL), UTTER_OK);
    for (size_t k = 0; k < 3; k++) { /* of frame 1, which is the last one */
        const size_t at = 16 + (k == 2 ? 15 : k);
        const int32_t right = ((const int32_t *)c.codes->data)[at], other = right == 5 ? 6 : 5;
        snprintf(wanted, sizeof wanted,
            "codes fails 63 of 64 codes, first in two-frames-full: frame 1 codebook %d: %d for %d, "
            "margin %.2g\n",
            (int)at - 16, right, other, (double)((const float *)c.margins->data)[at]);
        check_failed(
            with_code("two-frames-full/codes", at, other), "codes;samples, largest;samples, rms;");
        check_said(wanted);
        check_said("streamed = whole passes 1 of 1 cases\n");
        check_said("finish passes 2 of 2 cases\n");
    }
    const int32_t others[2] = {
        7, 8}; /* several of a frame: the first is told, and no later frame is compared */
    const char *path =
        with_code("two-frames-full/codes", 0, others[0] + (((const int32_t *)c.codes->data)[0] == 7));
    path =
        with_data(path, "two-frames-full/codes", 5, &others[((const int32_t *)c.codes->data)[5] == 7]);
    check_failed(path, "codes;samples, largest;samples, rms;");
    check_said("codes fails 46 of 48 codes, first in two-frames-full: frame 0 codebook 0: ");
    golden_close(&g);
    utter_model_close(&model);
}

static void sounds_are_compared_by_two_measures(void **state)
{
    (void)state;
    static const float far = -9, none = NAN;
    open_for("build/checkpoints/eos-first");
    check_failed(with_data(EOS_FIRST, "two-frames-full/samples", 3839, &far), SAMPLES);
    check_said("samples, largest fails 2 cases, worst in two-frames-full, frame 2\n");
    check_failed(with_data(EOS_FIRST, "two-frames-stream/samples", 0, &far), SAMPLES);
    check_said("samples, largest fails 2 cases, worst in two-frames-stream, frame 2\n");
    check_failed(with_data(EOS_FIRST, "two-frames-full/strided", 39, &far), SAMPLES);
    check_failed(with_data(EOS_FIRST, "two-frames-full/strided", 1, &none), SAMPLES);
    check_failed(with_header(EOS_FIRST, "'stride': 97", "'stride': 96"), SAMPLES);
    check_failed(with_header(EOS_FIRST, "{'n': 3840", "{'n': 3841"), "samples, largest;");
    check_failed(with_header(EOS_FIRST, "'rms': 0.06", "'rms': 0.00006"), "samples, rms;");
    check_failed(with_header(EOS_FIRST, "'rule': 'whole'", "'rule': 'official_chunks'"),
        ""); /* short: the same */
    check_said("streamed = whole passes 1 of 1 cases\n");
    utter_model_close(&model);
    /* The official sound in fp64 decides over one in fp32 that is too far away. */
    open_for("build/checkpoints/loud");
    check_failed("tests/golden/loud.safetensors", "");
    check_said("checkpoint passes 3 of 3 files\n");
    check_said("fp64, largest passes 1 cases, worst in decode-8, official fp32 ");
    check_said("fp64, rms passes 1 cases, worst in decode-8, official fp32 ");
    assert_true(!strstr(report, "samples, largest") == (strstr(report, "; decides 1\n") != NULL));
    const bool decided = strstr(report, "; decides 1\n") != NULL;
    check_failed(with_data("tests/golden/loud.safetensors", "decode-8/strided", 9, &far), "");
    check_said(
        "fp64, largest passes 1 cases, "); /* from which the official one in fp32 is further away */
    check_said("; decides 1\nfp64, rms");
    assert_null(strstr(report, "samples, "));
    verify(with_data("tests/golden/loud.safetensors", "decode-8/samples_fp64", 9, &far), NULL);
    check_said("fp64, largest fails 1 cases, ");
    check_said("fp64, rms fails 1 cases, ");
    check_said(decided ? "samples, largest fails 1 cases, " : "samples, largest passes 1 cases, ");
    utter_model_close(&model);
}

/* Each activation has its place: of the row or frame that is changed its stage fails, and no other. */
static void activations_are_compared_where_they_belong(void **state)
{
    (void)state;
    static const struct {
        const char *tensor;
        size_t index;
        const char *failed, *said;
    } cases[] = {
        {"prompt", 55 * 72 + 71, "prompt rows;",
            "prompt rows fails 1 tensors, worst in english-full, frame 0\n"},
        {"talker.layer.0", 0, "talker layers;",
            "talker layers fails 3 tensors, worst in english-full, frame 0\n"},
        {"talker.layer.2", 55 * 72 + 71, "talker layers;", "talker layers fails 3 tensors, "},
        {"hidden", 7 * 72 + 71, "talker state;",
            "talker state fails 8 frames, worst in english-full, frame 7\n"},
        {"logits", 2 * 1056, "talker logits;",
            "talker logits fails 8 frames, worst in english-full, frame 2\n"},
        {"sub_logits", 8 * 7 * 32 - 1, "predictor logits;", "worst in english-full, frame 7\n"},
        {"sub_logits", 5 * 7 * 32 + 31, "predictor logits;", "worst in english-full, frame 5\n"},
    };
    open_for("build/checkpoints/unusual");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const float far = 1e4f, none = NAN;
        char name[64];
        snprintf(name, sizeof name, "english-full/%s", cases[i].tensor);
        check_failed(
            with_data("tests/golden/unusual.safetensors", name, cases[i].index, i % 2 ? &none : &far),
            cases[i].failed);
        check_said(cases[i].said);
    }
    static const struct {
        const char *from, *to, *failed;
    } shapes[] = {
        {"english-full/prompt`:{`dtype`:`F32`,`shape`:[56,72]",
            "english-full/prompt`:{`dtype`:`F32`,`shape`:[72,56]", "prompt rows;"},
        {"english-full/hidden`:{`dtype`:`F32`", "english-full/hidden`:{`dtype`:`I32`", "talker state;"},
        {"english-full/hidden`", "english-full/hiddez`", ""}, /* what is not there is not compared */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_failed(with_header("tests/golden/unusual.safetensors", shapes[i].from, shapes[i].to),
            shapes[i].failed);
    }
    assert_null(strstr(report, "talker state"));
    utter_model_close(&model);
}

/* Whatever is kept of the time before, and however prompts are read. */
static void a_model_may_be_verified_again(void **state)
{
    (void)state;
    open_for("build/checkpoints/unusual");
    struct prompt_clock *clock = &model->engine.context.prompt_clock;
    for (int i = 0; i < 2; i++) {
        *clock = (struct prompt_clock){i, i};
        check_failed("tests/golden/unusual.safetensors", "");
        check_said("prompt rows passes 1 tensors");
        check_said("talker layers passes 3 tensors");
        check_said("talker state passes 8 frames");
        assert_true(clock->most_s == i);
    }
    utter_model_close(&model);
}

static void what_cannot_be_verified_is_told(void **state)
{
    (void)state;
    utter_error error;
    open_for("build/checkpoints/eos-first");
    assert_int_equal(utter_model_verify(NULL, EOS_FIRST, note, report, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_model_verify(model, NULL, note, report, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_model_verify(model, EOS_FIRST, NULL, report, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "an argument is NULL");
    assert_int_equal(verify("/nowhere", &error), UTTER_E_FILE);
    assert_int_equal(verify(BASE, &error), UTTER_E_ARGUMENT);
    assert_string_equal(
        error.text, "the golden file was made on a base model, this is a custom_voice model");
    assert_int_equal(verify(with_header(EOS_FIRST, "'speaker': 'ryan'", "'speaker': 'nobody'"), &error),
        UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "nobody"));
    assert_int_equal(
        verify(with_header(EOS_FIRST, "'frames': 2", "'frames': 3"), &error), UTTER_E_FILE);
    assert_string_equal(report, ""); /* nothing is told of what has not all run */
    bool failed = true;
    for (long n = 1; failed; n++) {
        error.text[0] = 0;
        support_fail_malloc_at(n);
        const utter_status status = verify(EOS_FIRST, &error);
        failed = support_failed();
        support_fail_off();
        assert_true(status == UTTER_OK || (failed && error.text[0]));
        assert_true(status || !strstr(report, " fails ")); /* what is missing is no difference */
    }
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_case_is_read_as_it_stands),
        cmocka_unit_test(what_is_no_golden_file_is_refused),
        cmocka_unit_test(a_case_that_is_broken_is_refused),
        cmocka_unit_test(files_are_compared_by_their_edges),
        cmocka_unit_test(each_difference_is_told_where_it_is),
        cmocka_unit_test(sounds_are_compared_by_two_measures),
        cmocka_unit_test(activations_are_compared_where_they_belong),
        cmocka_unit_test(a_model_may_be_verified_again),
        cmocka_unit_test(what_cannot_be_verified_is_told),
    };
    return cmocka_run_group_tests_name("golden files", tests, NULL, NULL);
}
