/* SPDX-License-Identifier: Apache-2.0
 * The tensors of the speaker encoder by name and shape: only Base checkpoints have one, and fine-tuned ones
 * keep its config without its tensors. */
#include "model/model_parts.h"

#define SPEAKER "speaker_encoder."
#define BLOCK SPEAKER "blocks.{}."

/* A convolution stays in the type of the file; what has taps is unpacked when a recording comes. */
static struct conv_weights bind_conv(struct model_bind *mb, const char *weight, const char *bias, int i,
    int j, int64_t out, int64_t in, int64_t taps)
{
    return (struct conv_weights){bind_weight(&mb->bind, weight, i, j, 3, (int64_t[]){out, in, taps}),
        model_vector(mb, bias, i, j, out)};
}

#define CONV(name, i, j, out, in, taps) bind_conv(mb, name ".weight", name ".bias", i, j, out, in, taps)

static void bind_block(struct model_bind *mb, const struct speaker_config *s, int i)
{
    struct speaker_block *b = &mb->model->speaker.blocks[i];
    int64_t channels = s->channels[i], group = channels / s->groups;
    b->conv_in = CONV(BLOCK "tdnn1.conv", i, -1, channels, channels, 1);
    for (int g = 0; g < s->groups - 1; g++) {
        b->groups[g] = CONV(BLOCK "res2net_block.blocks.{}.conv", i, g, group, group, s->taps[i]);
    }
    b->conv_out = CONV(BLOCK "tdnn2.conv", i, -1, channels, channels, 1);
    b->squeeze = CONV(BLOCK "se_block.conv1", i, -1, s->squeeze_channels, channels, 1);
    b->excite = CONV(BLOCK "se_block.conv2", i, -1, channels, s->squeeze_channels, 1);
}

void model_bind_speaker(struct model_bind *mb)
{
    const struct config *c = mb->model->config;
    const struct speaker_config *s = &c->speaker;
    struct speaker_weights *w = &mb->model->speaker;
    if (!c->has_speaker_encoder || !model_bind_has(mb, SPEAKER)) {
        return;
    }
    mb->model->has_speaker = true;
    w->blocks[0].conv_in = CONV(BLOCK "conv", 0, -1, s->channels[0], s->n_mels, s->taps[0]);
    for (int i = 1; i < s->n_blocks; i++) {
        bind_block(mb, s, i);
    }
    int64_t last = s->last_channels;
    w->join = CONV(SPEAKER "mfa.conv", -1, -1, last, last, 1);
    w->attend1 = CONV(SPEAKER "asp.tdnn.conv", -1, -1, s->attention_channels, 3 * last, 1);
    w->attend2 = CONV(SPEAKER "asp.conv", -1, -1, last, s->attention_channels, 1);
    w->out = CONV(SPEAKER "fc", -1, -1, c->speaker_width, 2 * last, 1);
}
