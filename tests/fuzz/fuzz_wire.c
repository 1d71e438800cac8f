/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as messages between front end and worker; a body that is read is written back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect_same(struct wire_out *out, const struct wire_message *m)
{
    if (out->failed || out->n != WIRE_HEADER_BYTES + m->bytes ||
        memcmp(out->bytes + WIRE_HEADER_BYTES, m->body, m->bytes) != 0) {
        abort();
    }
}

/* Words that are read and written are read the same. */
static void read_words(const struct wire_message *m)
{
    struct wire_words words, again;
    struct wire_message other;
    struct wire_out out = {0};
    size_t used;
    if (!wire_get_words(&words, m)) {
        return;
    }
    utter_word *all = calloc(words.n + 1, sizeof *all);
    for (size_t i = 0; i < words.n; i++) {
        all[i] = wire_word(&words, i);
    }
    wire_put_words(&out, m->id, words.first, all, words.n, words.approximate);
    if (wire_read(&other, out.bytes, out.n, &used) != WIRE_MESSAGE || used != out.n ||
        !wire_get_words(&again, &other) || again.n != words.n || again.first != words.first) {
        abort();
    }
    for (size_t i = 0; i < words.n; i++) {
        const utter_word word = wire_word(&again, i);
        if (word.at != all[i].at || word.end != all[i].end || word.final != all[i].final) {
            abort();
        }
    }
    free(all);
    wire_fini(&out);
}

static void read_body(const struct wire_message *m)
{
    struct wire_out out = {0};
    struct wire_hello hello;
    struct wire_open open;
    struct wire_done done;
    struct wire_failed failed;
    struct wire_beat beat;
    static struct wire_ready ready;
    if (m->kind == WIRE_WORDS) {
        read_words(m);
    } else if (m->kind == WIRE_HELLO && wire_get_hello(&hello, m)) {
        wire_put_hello(&out, &hello);
    } else if (m->kind == WIRE_OPEN && wire_get_open(&open, m)) {
        wire_put_open(&out, m->id, &open);
    } else if (m->kind == WIRE_DONE && wire_get_done(&done, m)) {
        wire_put_done(&out, m->id, &done);
    } else if (m->kind == WIRE_FAILED && wire_get_failed(&failed, m)) {
        wire_put_failed(&out, m->id, failed.status, failed.text);
    } else if (m->kind == WIRE_REFUSED && m->id == 0 && wire_get_failed(&failed, m)) {
        wire_put_refused(&out, failed.status, failed.text);
    } else if (m->kind == WIRE_KERNELS && wire_get_kernels(m)) {
        wire_put_kernels(&out, wire_get_kernels(m));
    } else if (m->kind == WIRE_BEAT && wire_get_beat(&beat, m)) {
        wire_put_beat(&out, &beat);
    } else if (m->kind == WIRE_READY && wire_get_ready(&ready, m)) {
        struct wire_message again;
        size_t used;
        static struct wire_ready twice;
        wire_put_ready(&out, &ready);
        if (wire_read(&again, out.bytes, out.n, &used) != WIRE_MESSAGE ||
            !wire_get_ready(&twice, &again) || twice.n_voices != ready.n_voices) {
            abort();
        }
        wire_fini(&out);
    }
    if (out.n) {
        expect_same(&out, m);
    }
    wire_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wire_message m;
    size_t used;
    while (wire_read(&m, data, bytes, &used) == WIRE_MESSAGE) {
        if (used == 0 || used > bytes) {
            abort();
        }
        read_body(&m);
        data += used;
        bytes -= used;
    }
    return 0;
}
