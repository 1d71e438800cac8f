/* SPDX-License-Identifier: Apache-2.0
 * Looks tensors up by name and shape and collects what does not fit. */
#include "weights/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numeric.h"
#include "weights/pack.h"

/* The report is what fits into the error text; the rest is counted. */
enum { REPORT_BYTES = sizeof(((utter_error *)0)->text) - 256, NAME_BYTES = 256 };

void bind_begin(struct bind *b, const struct tensor_set *set, const char *file)
{
    *b = (struct bind){.set = set, .file = file};
}

/* `pattern` with its first and second "{}" replaced by the indices; cut at NAME_BYTES, which no tensor
 * of ours comes near. */
static void name_make(char name[NAME_BYTES], const char *pattern, int index, int index2)
{
    int indices[2] = {index, index2};
    size_t used = 0;
    name[0] = 0;
    for (int i = 0; i < 2 && indices[i] >= 0; i++) {
        const char *mark = strstr(pattern, "{}");
        if (!mark) {
            break;
        }
        int n = snprintf(
            name + used, NAME_BYTES - used, "%.*s%d", (int)(mark - pattern), pattern, indices[i]);
        used += n > 0 && (size_t)n < NAME_BYTES - used ? (size_t)n : 0;
        pattern = mark + 2;
    }
    snprintf(name + used, NAME_BYTES - used, "%s", pattern);
}

/* "[2, 3]" in out. */
static const char *dims_text(char out[192], int n_dims, const int64_t *dims)
{
    size_t used = (size_t)snprintf(out, 192, "[");
    for (int i = 0; i < n_dims; i++) {
        used += (size_t)snprintf(out + used, 192 - used, "%s%" PRId64, i ? ", " : "", dims[i]);
    }
    snprintf(out + used, 192 - used, "]");
    return out;
}

/* Counts a problem, whose line ends in "; ", and adds it to the report while there is room. */
static void bind_add(struct bind *b, const char *line, size_t n)
{
    b->n_problems++;
    if (!b->report && !(b->report = memory_new(REPORT_BYTES, 1))) {
        b->out_of_memory = true;
        return;
    }
    if (b->n_shown == b->n_problems - 1 && b->report_bytes + n < REPORT_BYTES) {
        memcpy(b->report + b->report_bytes, line, n + 1);
        b->report_bytes += n;
        b->n_shown++;
    }
}

static void bind_note(struct bind *b, const char *name, const char *types, int n_dims,
    const int64_t *dims, const struct tensor *found)
{
    char wanted[192], have[192], line[NAME_BYTES + 512];
    int n;
    if (found) {
        n = snprintf(line, sizeof line, "%s: want %s %s, have %s %s; ", name, types,
            dims_text(wanted, n_dims, dims), dtype_name(found->type),
            dims_text(have, found->n_dims, found->dims));
    } else {
        n = snprintf(line, sizeof line, "%s: want %s %s, have nothing; ", name, types,
            dims_text(wanted, n_dims, dims));
    }
    bind_add(b, line, (size_t)n);
}

void bind_no_more(struct bind *b, const char *pattern, int index)
{
    char name[NAME_BYTES], line[NAME_BYTES + 128];
    name_make(name, pattern, index, -1);
    if (tensor_set_find(b->set, name)) {
        int n = snprintf(
            line, sizeof line, "%s: more layers than the %d that the config says; ", name, index);
        bind_add(b, line, (size_t)n);
    }
}

static bool has_dims(const struct tensor *t, int n_dims, const int64_t *dims)
{
    return t->n_dims == n_dims &&
           (n_dims == 0 || memcmp(t->dims, dims, (size_t)n_dims * sizeof *dims) == 0);
}

struct weight bind_weight(
    struct bind *b, const char *pattern, int index, int index2, int n_dims, const int64_t *dims)
{
    char name[NAME_BYTES];
    name_make(name, pattern, index, index2);
    const struct tensor *t = tensor_set_find(b->set, name);
    bool is_type = t && (t->type == DTYPE_BF16 || t->type == DTYPE_F32 || t->type == DTYPE_F16);
    if (!is_type || !has_dims(t, n_dims, dims)) {
        bind_note(b, name, "BF16, F16 or F32", n_dims, dims, t);
        return (struct weight){0};
    }
    struct weight w = {.data = t->data, .type = t->type, .rows = n_dims > 0 ? dims[0] : 1, .cols = 1};
    for (int i = 1; i < n_dims; i++) {
        w.cols *= dims[i]; /* fits: the set has checked the product of all dims */
    }
    return w;
}

struct weight bind_linear(
    struct bind *b, const char *pattern, int index, int index2, int64_t rows, int64_t cols)
{
    char name[NAME_BYTES];
    name_make(name, pattern, index, index2);
    const struct tensor *t = tensor_set_find(b->set, name);
    for (enum dtype type = DTYPE_Q8; t && t->type == DTYPE_U32 && type <= DTYPE_Q4; type++) {
        int64_t words = (int64_t)(pack_block_bytes(type, cols) / 4);
        if (has_dims(t, 2, (int64_t[]){pack_blocks(rows), words})) {
            return (struct weight){t->data, type, rows, cols};
        }
    }
    return bind_weight(b, pattern, index, index2, 2, (int64_t[]){rows, cols});
}

static bool is_float(enum dtype type)
{
    return type == DTYPE_F32 || type == DTYPE_BF16 || type == DTYPE_F16 || type == DTYPE_F64;
}

static float float_at(const struct tensor *t, size_t i)
{
    switch (t->type) {
    case DTYPE_BF16:
        return bf16_to_float(((const uint16_t *)t->data)[i]);
    case DTYPE_F16:
        return f16_to_float(((const uint16_t *)t->data)[i]);
    case DTYPE_F64:
        return (float)((const double *)t->data)[i];
    default:
        return ((const float *)t->data)[i];
    }
}

float *bind_vector(struct bind *b, const char *pattern, int index, int index2, int64_t n)
{
    char name[NAME_BYTES];
    name_make(name, pattern, index, index2);
    const struct tensor *t = tensor_set_find(b->set, name);
    if (!t || !is_float(t->type) || !has_dims(t, 1, &n)) {
        bind_note(b, name, "floats", 1, &n, t);
        return NULL;
    }
    float *values = memory_new((size_t)n, sizeof *values);
    if (!values) {
        b->out_of_memory = true;
        return NULL;
    }
    for (size_t i = 0; i < (size_t)n; i++) {
        values[i] = float_at(t, i);
    }
    return values;
}

utter_status bind_finish(struct bind *b, utter_error *error)
{
    utter_status status = UTTER_OK;
    if (b->out_of_memory) {
        status = error_memory(error, "the model's tensors");
    } else if (b->n_problems) {
        char shown[160], more[32] = "";
        b->report[b->report_bytes - 2] = 0; /* the last "; " */
        if (b->n_shown < b->n_problems) {
            snprintf(more, sizeof more, "; and %d more", b->n_problems - b->n_shown);
        }
        status = error_set(error, UTTER_E_MODEL, "%s: %d %s: %s%s",
            error_quote(shown, sizeof shown, b->file, strlen(b->file)), b->n_problems,
            b->n_problems == 1 ? "tensor does not fit" : "tensors do not fit", b->report, more);
    }
    memory_free(b->report);
    *b = (struct bind){0};
    return status;
}
