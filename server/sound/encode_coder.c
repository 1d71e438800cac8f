/* SPDX-License-Identifier: Apache-2.0
 * The table of formats: MP3 (lame), Ogg Opus (libopusenc), FLAC (libFLAC) and AAC-LC in ADTS (vo-aacenc), each as a
 * stream without seeking. */
#include <FLAC/stream_encoder.h>
#include <lame/lame.h>
#include <opus/opusenc.h>
#include <string.h>
#include <vo-aacenc/cmnMemory.h>
#include <vo-aacenc/voAAC.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "server/sound/encode_parts.h"

enum {
    OPEN_BYTES = 1 << 20, /* more than any takes */
    BLOCK = 1920,
    MP3_KBIT = 128,
    AAC_FRAME = 1024,
    OPUS_BITS = 32000
};

struct encode_coder {
    struct encode_settings settings;
    int rate;             /* of the output */
    struct wire_out *out; /* of the call that runs */
    bool failed;
    lame_t mp3;
    OggOpusEnc *opus;
    OggOpusComments *comments;
    FLAC__StreamEncoder *flac;
    VO_AUDIO_CODECAPI aac_calls;
    VO_HANDLE aac;
    uint8_t *aac_memory;
    int16_t block[AAC_FRAME]; /* of AAC: samples that make no frame yet */
    size_t n_block;
};

static int opus_write(void *user, const unsigned char *bytes, opus_int32 n)
{
    struct encode_coder *c = user;
    wire_put(c->out, bytes, (size_t)n);
    return c->out->failed;
}

static int opus_close(void *user)
{
    (void)user;
    return 0;
}

static bool open_opus(struct encode_coder *c)
{
    static const OpusEncCallbacks calls = {opus_write, opus_close};
    int fault = 0;
    c->comments = ope_comments_create();
    c->opus = c->comments ? ope_encoder_create_callbacks(&calls, c, c->comments, c->rate, 1, 0, &fault)
                          : NULL;
    if (!c->opus) {
        return false;
    }
    /* A page for each packet of 20 ms: players start at once. In samples of 48 kHz; 0 would be no bound at all. */
    ope_encoder_ctl(c->opus, OPE_SET_MUXING_DELAY(960));
    ope_encoder_ctl(c->opus, OPE_SET_DECISION_DELAY(0));
    ope_encoder_ctl(c->opus, OPE_SET_SERIALNO(1)); /* the same request gives the same bytes */
    ope_encoder_ctl(c->opus, OPUS_SET_BITRATE(c->settings.bit_rate ? c->settings.bit_rate : OPUS_BITS));
    ope_encoder_ctl(c->opus, OPUS_SET_SIGNAL(OPUS_SIGNAL_VOICE));
    ope_encoder_ctl(c->opus, OPUS_SET_COMPLEXITY(5));
    return true;
}

static FLAC__StreamEncoderWriteStatus flac_write(const FLAC__StreamEncoder *flac,
    const FLAC__byte bytes[], size_t n, uint32_t samples, uint32_t frame, void *user)
{
    struct encode_coder *c = user;
    (void)flac, (void)samples, (void)frame;
    if (c->out) {
        wire_put(c->out, bytes, n);
    }
    return FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
}

static bool open_mp3(struct encode_coder *c)
{
    int kbit = c->settings.bit_rate ? c->settings.bit_rate / 1000 : c->rate < 16000 ? 64 : MP3_KBIT;
    c->mp3 = lame_init();
    return c->mp3 && !lame_set_in_samplerate(c->mp3, c->rate) &&
           !lame_set_out_samplerate(c->mp3, c->rate) && !lame_set_num_channels(c->mp3, 1) &&
           !lame_set_mode(c->mp3, MONO) && !lame_set_brate(c->mp3, kbit) &&
           !lame_set_quality(c->mp3, 5) && !lame_set_bWriteVbrTag(c->mp3, 0) &&
           !lame_set_disable_reservoir(c->mp3, 1) && lame_init_params(c->mp3) >= 0;
}

/* vo-aacenc takes its memory as it is opened, 49 KB, and writes to what it was not given: so all is there before. */
enum { AAC_BYTES = 128 << 10 };
static _Thread_local struct {
    uint8_t *at;
    size_t left;
} aac_memory; /* of the coder that is opened */

static VO_U32 aac_take(VO_S32 id, VO_MEM_INFO *wanted)
{
    size_t n = ((size_t)wanted->Size + 63) / 64 * 64;
    (void)id;
    if (n > aac_memory.left) {
        return VO_ERR_OUTOF_MEMORY;
    }
    wanted->VBuffer = aac_memory.at;
    aac_memory.at += n;
    aac_memory.left -= n;
    return VO_ERR_NONE;
}

static VO_U32 aac_give_back(VO_S32 id, VO_PTR block)
{
    (void)id, (void)block;
    return VO_ERR_NONE;
}

static bool open_aac(struct encode_coder *c)
{
    static VO_MEM_OPERATOR memory = {
        aac_take, aac_give_back, cmnMemSet, cmnMemCopy, cmnMemCheck, cmnMemCompare, cmnMemMove};
    c->aac_memory = memory_new(AAC_BYTES, 1);
    if (!c->aac_memory) {
        return false;
    }
    aac_memory.at = c->aac_memory;
    aac_memory.left = AAC_BYTES;
    VO_CODEC_INIT_USERDATA user = {.memflag = VO_IMF_USERMEMOPERATOR, .memData = &memory};
    AACENC_PARAM settings = {c->rate, c->rate < 16000 ? 32000 : 64000, 1, 1};
    return voGetAACEncAPI(&c->aac_calls) == VO_ERR_NONE &&
           c->aac_calls.Init(&c->aac, VO_AUDIO_CodingAAC, &user) == VO_ERR_NONE &&
           c->aac_calls.SetParam(c->aac, VO_PID_AAC_ENCPARAM, &settings) == VO_ERR_NONE;
}

static bool open_flac(struct encode_coder *c)
{
    c->flac = FLAC__stream_encoder_new();
    return c->flac && FLAC__stream_encoder_set_channels(c->flac, 1) &&
           FLAC__stream_encoder_set_bits_per_sample(c->flac, 16) &&
           FLAC__stream_encoder_set_sample_rate(c->flac, (uint32_t)c->rate) &&
           FLAC__stream_encoder_set_compression_level(c->flac, 3) &&
           FLAC__stream_encoder_set_blocksize(c->flac, BLOCK) &&
           FLAC__stream_encoder_set_streamable_subset(c->flac, true);
}

static bool feed_mp3(struct encode_coder *c, const float *pcm, size_t n, bool final)
{
    uint8_t bytes[BLOCK * 5 / 4 + 7200];
    int made = n ? lame_encode_buffer_ieee_float(c->mp3, pcm, NULL, (int)n, bytes, sizeof bytes) : 0;
    if (made > 0) {
        wire_put(c->out, bytes, (size_t)made);
    }
    if (made >= 0 && final && (made = lame_encode_flush(c->mp3, bytes, sizeof bytes)) > 0) {
        wire_put(c->out, bytes, (size_t)made);
    }
    return made >= 0;
}

static bool feed_opus(struct encode_coder *c, const float *pcm, size_t n, bool final)
{
    return (n == 0 || ope_encoder_write_float(c->opus, pcm, (int)n) == OPE_OK) &&
           (!final || ope_encoder_drain(c->opus) == OPE_OK);
}

static bool feed_flac(struct encode_coder *c, const float *pcm, size_t n, bool final)
{
    FLAC__int32 block[BLOCK];
    if (FLAC__stream_encoder_get_state(c->flac) == FLAC__STREAM_ENCODER_UNINITIALIZED &&
        FLAC__stream_encoder_init_stream(c->flac, flac_write, NULL, NULL, NULL, c) !=
            FLAC__STREAM_ENCODER_INIT_STATUS_OK) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        block[i] = samples_s16(pcm[i]);
    }
    return (n == 0 || FLAC__stream_encoder_process_interleaved(c->flac, block, (uint32_t)n)) &&
           (!final || FLAC__stream_encoder_finish(c->flac));
}

static bool feed_aac_frame(struct encode_coder *c)
{
    uint8_t bytes[2048];
    VO_CODECBUFFER in = {.Buffer = (VO_PBYTE)c->block, .Length = sizeof c->block};
    VO_CODECBUFFER out = {.Buffer = bytes, .Length = sizeof bytes};
    VO_AUDIO_OUTPUTINFO info = {0};
    c->n_block = 0;
    if (c->aac_calls.SetInputData(c->aac, &in) != VO_ERR_NONE) {
        return false;
    }
    VO_U32 status = c->aac_calls.GetOutputData(c->aac, &out, &info);
    if (status == VO_ERR_NONE) {
        wire_put(c->out, bytes, out.Length);
    }
    return status == VO_ERR_NONE || status == VO_ERR_INPUT_BUFFER_SMALL;
}

static bool feed_aac(struct encode_coder *c, const float *pcm, size_t n, bool final)
{
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        c->block[c->n_block++] = samples_s16(pcm[i]);
        good = c->n_block < AAC_FRAME || feed_aac_frame(c);
    }
    /* The last samples need a frame, and the encoder keeps one frame back. */
    for (int i = 0; i < 2 && final && good; i++) {
        memset(c->block + c->n_block, 0, (AAC_FRAME - c->n_block) * sizeof *c->block);
        good = feed_aac_frame(c);
    }
    return good;
}

static const struct {
    const char *name, *content_type;
    bool any_rate;
    int delay; /* samples that coder and decoder put in front, and that no decoder takes away again */
    /* NULL: samples as they are. feed takes at most BLOCK samples; final: what it holds is written. */
    bool (*open)(struct encode_coder *c);
    bool (*feed)(struct encode_coder *c, const float *pcm, size_t n, bool final);
} formats[] = {
    [ENCODE_WAV] = {"wav", "audio/wav", true, 0, NULL, NULL},
    [ENCODE_PCM] = {"pcm", "audio/pcm", true, 0, NULL, NULL},
    [ENCODE_MP3] = {"mp3", "audio/mpeg", false, 1105, open_mp3, feed_mp3},
    [ENCODE_OPUS] = {"opus", "audio/ogg", true, 0, open_opus, feed_opus},
    [ENCODE_FLAC] = {"flac", "audio/flac", true, 0, open_flac, feed_flac},
    [ENCODE_AAC] = {"aac", "audio/aac", false, 1600, open_aac, feed_aac},
};
_Static_assert(sizeof formats / sizeof *formats == ENCODE_FORMATS, "a row for each format");

const char *encode_format_name(enum encode_format format)
{
    return formats[format].name;
}

const char *encode_content_type(enum encode_format format)
{
    return formats[format].content_type;
}

bool encode_is_coded(enum encode_format format)
{
    return formats[format].open != NULL;
}

int encode_delay_samples(enum encode_format format)
{
    return formats[format].delay;
}

bool encode_has_any_rate(enum encode_format format)
{
    return formats[format].any_rate;
}

struct encode_coder *encode_coder_new(const struct encode_settings *settings, int rate)
{
    /* lame for one ends the process where it finds no memory as it is opened: it is not even tried without. */
    void *room = memory_plain_new(OPEN_BYTES);
    struct encode_coder *c = room ? memory_new(1, sizeof *c) : NULL;
    memory_plain_free(room);
    if (!c) {
        return NULL;
    }
    c->settings = *settings;
    c->rate = rate;
    if (!formats[settings->format].open(c)) {
        encode_coder_free(c);
        return NULL;
    }
    return c;
}

void encode_coder_free(struct encode_coder *c)
{
    if (!c) {
        return;
    }
    struct wire_out drain = {0};
    c->out = &drain; /* who is closed early still writes what it holds */
    if (c->mp3) {
        lame_close(c->mp3);
    }
    if (c->opus) {
        ope_encoder_destroy(c->opus);
    }
    if (c->comments) {
        ope_comments_destroy(c->comments);
    }
    if (c->flac) {
        FLAC__stream_encoder_delete(c->flac);
    }
    if (c->aac) {
        c->aac_calls.Uninit(c->aac);
    }
    memory_free(c->aac_memory);
    wire_fini(&drain);
    memory_free(c);
}

bool encode_coder_feed(
    struct encode_coder *c, const float *pcm, size_t n, bool final, struct wire_out *out)
{
    c->out = out;
    for (bool last = false; !last && !c->failed;) {
        size_t take = min(n, BLOCK);
        last = take == n;
        c->failed = !formats[c->settings.format].feed(c, pcm, take, final && last) || out->failed;
        pcm += take;
        n -= take;
    }
    return !c->failed;
}
