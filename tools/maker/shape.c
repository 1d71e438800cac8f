/* SPDX-License-Identifier: Apache-2.0
 * The table of shapes, and the options that change one number of it. */

#include <stdio.h>
#include <string.h>

#include "tools/maker/maker.h"

/* What the two sizes of a family share: all but the talker. */
#define TINY                                                                                           \
    .predictor = {64, 96, 2, 4, 2, 32}, .text_width = 48, .codebooks = 16, .codebook_size = 64,        \
    .vocoder = {32, 48, 2, 4, 4, 16}, .latent = 48, .code_width = 32, .conv_width = 64, .window = 72,  \
    .encoder = {32, 64, 2, 4, 4, 8}, .filters = 4, .encoder_code_width = 16, .quantizers = 32,         \
    .speaker_channels = 64, .speaker_last = 192, .speaker_narrow = 16
#define RELEASED                                                                                       \
    .predictor = {1024, 3072, 5, 16, 8, 128}, .text_width = 2048, .text_rows = 151936,                 \
    .codebooks = 16, .codebook_size = 2048, .vocoder = {512, 1024, 8, 16, 16, 64}, .latent = 1024,     \
    .code_width = 512, .conv_width = 1536, .snake_beta = 1, .window = 72,                              \
    .encoder = {512, 2048, 8, 8, 8, 64}, .filters = 64, .encoder_code_width = 256, .quantizers = 32,   \
    .speaker_channels = 512, .speaker_last = 1536, .speaker_narrow = 128

static const struct shape shapes[] = {
    {.name = "tiny06", .size = "0b6", .talker = {64, 160, 2, 4, 2, 32}, TINY},
    /* Wider than its predictor. */
    {.name = "tiny17", .size = "1b7", .talker = {96, 224, 2, 4, 2, 32}, TINY},
    {.name = "0.6b", .size = "0b6", .talker = {1024, 3072, 28, 16, 8, 128}, RELEASED},
    {.name = "1.7b", .size = "1b7", .talker = {2048, 6144, 28, 16, 8, 128}, RELEASED},
};

const char *variant_name(enum variant variant)
{
    static const char *const names[N_VARIANTS] = {"base", "custom_voice", "voice_design"};
    return names[variant];
}

const struct shape *shape_find(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (strcmp(shapes[i].name, name) == 0) {
            return &shapes[i];
        }
    }
    return NULL;
}

const char *shape_names(void)
{
    return "tiny06, tiny17, 0.6b, 1.7b";
}

#define FIELD(option, member)                                                                          \
    {                                                                                                  \
        option, offsetof(struct shape, member)                                                         \
    }
static const struct {
    const char *option;
    size_t offset;
} fields[] = {
    FIELD("--width", talker.width),
    FIELD("--inner", talker.inner),
    FIELD("--layers", talker.layers),
    FIELD("--heads", talker.heads),
    FIELD("--kv-heads", talker.kv_heads),
    FIELD("--head-dim", talker.head_dim),
    FIELD("--predictor-width", predictor.width),
    FIELD("--predictor-inner", predictor.inner),
    FIELD("--predictor-layers", predictor.layers),
    FIELD("--predictor-heads", predictor.heads),
    FIELD("--predictor-kv-heads", predictor.kv_heads),
    FIELD("--predictor-head-dim", predictor.head_dim),
    FIELD("--text-width", text_width),
    FIELD("--text-rows", text_rows),
    FIELD("--codebooks", codebooks),
    FIELD("--codebook-size", codebook_size),
    FIELD("--vocoder-width", vocoder.width),
    FIELD("--vocoder-inner", vocoder.inner),
    FIELD("--vocoder-layers", vocoder.layers),
    FIELD("--latent", latent),
    FIELD("--code-width", code_width),
    FIELD("--conv-width", conv_width),
    FIELD("--window", window),
};

int *shape_field(struct shape *shape, const char *option)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].option, option) == 0) {
            return (int *)((char *)shape + fields[i].offset);
        }
    }
    return NULL;
}

void shape_list_fields(void)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        printf("%s%s", i % 5 ? "  " : "\n  ", fields[i].option);
    }
    printf("\n");
}

void shape_check(const struct shape *s)
{
    if (s->talker.heads % s->talker.kv_heads || s->predictor.heads % s->predictor.kv_heads) {
        fail("heads must be a multiple of key-value heads");
    }
    if (s->talker.head_dim % 2 || s->predictor.head_dim % 2 || s->code_width % 2) {
        fail("head dims and the code width must be even");
    }
    if (s->conv_width % 16) {
        fail("the convolution width is halved four times: --conv-width must be a multiple of 16");
    }
    if (s->codebook_size & (s->codebook_size - 1)) {
        fail("the official encoder wants a codebook size that is a power of two");
    }
    if (s->codebooks < 2) {
        fail("at least 2 codebooks are needed");
    }
    if (s->quantizers < s->codebooks) {
        fail("the codec encoder of this shape has only %d codebooks", s->quantizers);
    }
}

int shape_control_id(const struct shape *shape, int released_id)
{
    return released_id - 2048 + shape->codebook_size;
}

int shape_codec_rows(const struct shape *shape)
{
    return shape->codebook_size + 1024;
}
