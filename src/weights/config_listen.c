/* SPDX-License-Identifier: Apache-2.0
 * The config of what listens to recordings: the codec's encoder and the speaker encoder. A form that this
 * program does not know is refused here, so that nothing after it has to look. */
#include <string.h>

#include "base/minmax.h"
#include "weights/config_parts.h"

/* The last convolution after the transformer halves the rate; it has twice as many taps. */
enum { LAST_RATE = 2 };

static utter_status want_switches(struct json_fields *f)
{
    bool known = json_take_bool(f, "use_causal_conv", true) &&
                 !json_take_bool(f, "use_conv_shortcut", false) &&
                 json_take_int(f, "num_residual_layers", 0, 64, 1) == 1 &&
                 json_take_int(f, "audio_channels", 1, 64, 1) == 1 &&
                 json_take_int(f, "num_semantic_quantizers", 1, 64, 1) == 1 &&
                 strcmp(json_take_string(f, "pad_mode", "constant"), "constant") == 0 &&
                 strcmp(json_take_string(f, "hidden_act", "gelu"), "gelu") == 0;
    if (!f->status && !known) {
        f->status = error_set(f->error, UTTER_E_MODEL,
            "%s: another kind of encoder (known: causal, one channel, one residual unit a stage, "
            "pad_mode "
            "constant, hidden_act gelu, one semantic quantizer)",
            f->where);
    }
    return f->status;
}

/* What has to agree with the decoder and with the top of the file. */
static utter_status check_encoder(
    const struct codec_config *d, struct json_fields *f, struct json_fields *top, int samples)
{
    int size = (int)json_need_int(f, "codebook_size", 1, 1 << 22);
    int quantizers = (int)json_need_int(f, "num_quantizers", 1, 1024);
    int inner = (int)json_take_int(
        f, "vector_quantization_hidden_dimension", 1, CONFIG_MAX_WIDTH, d->encoder.codebook_dim);
    int valid = (int)json_take_int(top, "encoder_valid_num_quantizers", 1, 1024, d->n_codebooks);
    int frame = (int)json_take_int(top, "encode_downsample_rate", 1, 1 << 20, d->frame_samples);
    int rate = (int)json_take_int(top, "input_sample_rate", 1000, 384000, d->sample_rate);
    if (f->status || top->status) {
        return f->status ? f->status : top->status;
    }
    if (frame != samples) {
        return f->status = error_set(f->error, UTTER_E_MODEL,
                   "%s: encode_downsample_rate is %d; its convolutions make a frame of %d samples",
                   f->where, frame, samples);
    }
    if (size != d->codebook_size || valid != d->n_codebooks || quantizers < valid ||
        inner != d->encoder.codebook_dim || frame != d->frame_samples || rate != d->sample_rate) {
        return f->status = error_set(f->error, UTTER_E_MODEL,
                   "%s: %d codebooks of %d codes, %d samples a frame at %d Hz; the decoder has %d of "
                   "%d, %d at "
                   "%d Hz",
                   f->where, min(quantizers, valid), size, samples, rate, d->n_codebooks,
                   d->codebook_size, d->frame_samples, d->sample_rate);
    }
    return UTTER_OK;
}

utter_status config_read_encoder(struct codec_config *d, const json_t *object, struct json_fields *top)
{
    struct encoder_config *e = &d->encoder;
    const char *where = "speech_tokenizer/config.json: encoder_config";
    utter_status status = config_read_stack(&e->stack, object, where, "norm_eps", top->error);
    if (status) {
        return status;
    }
    struct json_fields f = {object, where, top->error, UTTER_OK};
    e->filters = (int)json_need_int(&f, "num_filters", 1, 4096);
    e->compress = (int)json_need_int(&f, "compress", 1, 64);
    e->first_taps = (int)json_need_int(&f, "kernel_size", 1, 64);
    e->residual_taps = (int)json_need_int(&f, "residual_kernel_size", 1, 64);
    e->last_taps = (int)json_need_int(&f, "last_kernel_size", 1, 64);
    e->codebook_dim = (int)json_need_int(&f, "codebook_dim", 1, CONFIG_MAX_WIDTH);
    int samples = LAST_RATE;
    if (f.status || want_switches(&f) ||
        config_read_rates(e->rates, &e->n_rates, &samples, &f, "upsampling_ratios") ||
        check_encoder(d, &f, top, samples)) {
        return f.status ? f.status : top->status;
    }
    for (int i = 0; i < e->n_rates / 2;
         i++) { /* the file lists them as the decoder of its family goes */
        int other = e->rates[e->n_rates - 1 - i];
        e->rates[e->n_rates - 1 - i] = e->rates[i];
        e->rates[i] = other;
    }
    if (e->filters % e->compress || (int64_t)e->filters << e->n_rates > CONFIG_MAX_WIDTH) {
        return error_set(top->error, UTTER_E_MODEL,
            "%s: num_filters %d does not divide by compress %d, or grows too wide", where, e->filters,
            e->compress);
    }
    d->has_encoder = true;
    return UTTER_OK;
}

/* A list of n numbers; `fallback` when the key is missing. Returns the length, 0 on a failure. */
static int read_list(
    int *list, struct json_fields *f, const char *key, int high, const int *fallback, int n_fallback)
{
    const json_t *array = json_object_get(f->object, key);
    if (!array || json_is_null(array)) {
        memcpy(list, fallback, (size_t)n_fallback * sizeof *list);
        return n_fallback;
    }
    size_t n = json_array_size(array);
    bool good = n >= 3 && n <= CONFIG_SPEAKER_BLOCKS;
    for (size_t i = 0; good && i < n; i++) {
        const json_t *value = json_array_get(array, i);
        json_int_t number = json_integer_value(value);
        good = json_is_integer(value) && number >= 1 && number <= high;
        list[i] = (int)number;
    }
    if (!good) {
        f->status =
            error_set(f->error, UTTER_E_MODEL, "%s: %s is not a list of 3 to %d numbers in 1..%d",
                f->where, key, CONFIG_SPEAKER_BLOCKS, high);
        return 0;
    }
    return (int)n;
}

utter_status config_read_speaker(struct speaker_config *s, struct json_fields *f)
{
    static const int channels[] = {512, 512, 512, 512, 1536}, taps[] = {5, 3, 3, 3, 1},
                     dilations[] = {1, 2, 3, 4, 1};
    int n_channels = read_list(s->channels, f, "enc_channels", CONFIG_MAX_WIDTH, channels, 5);
    int n_taps = f->status ? 0 : read_list(s->taps, f, "enc_kernel_sizes", 63, taps, 5);
    int n_dilations = f->status ? 0 : read_list(s->dilations, f, "enc_dilations", 64, dilations, 5);
    s->n_mels = (int)json_take_int(f, "mel_dim", 1, 512, 128);
    s->groups = (int)json_take_int(f, "enc_res2net_scale", 1, CONFIG_SPEAKER_GROUPS, 8);
    s->attention_channels = (int)json_take_int(f, "enc_attention_channels", 1, CONFIG_MAX_WIDTH, 128);
    s->squeeze_channels = (int)json_take_int(f, "enc_se_channels", 1, CONFIG_MAX_WIDTH, 128);
    int rate = (int)json_take_int(f, "sample_rate", 1, 1 << 20, CONFIG_SPEAKER_RATE);
    if (f->status) {
        return f->status;
    }
    /* Equal widths in all blocks (a block adds its input to its output), put together at the end. */
    s->n_blocks = n_channels - 1;
    s->last_channels = s->channels[s->n_blocks];
    bool fits = n_taps == n_channels && n_dilations == n_channels && rate == CONFIG_SPEAKER_RATE &&
                s->n_mels == 128 && s->channels[0] % s->groups == 0 && s->taps[s->n_blocks] == 1 &&
                s->last_channels == (s->n_blocks - 1) * s->channels[0];
    for (int i = 0; i < s->n_blocks; i++) {
        fits = fits && s->channels[i] == s->channels[0] && s->taps[i] % 2 == 1;
    }
    if (!fits) {
        return f->status = error_set(f->error, UTTER_E_MODEL,
                   "%s: lists that do not fit together (wanted: equal channels that divide into the "
                   "groups, the "
                   "last their sum without the first; odd taps, the last 1; 128 bands, 24000 Hz)",
                   f->where);
    }
    return UTTER_OK;
}
