/* SPDX-License-Identifier: Apache-2.0
 * utter: text to speech with the Qwen3-TTS family.
 *
 * Three nouns. A *model* is a checkpoint on a device, with room ("lanes") for several utterances at once. A *voice*
 * says who speaks; it never changes and may be shared. A *stream* is one utterance: text goes in, whole or in
 * pieces, and float samples come out at 24 kHz while they are made.
 *
 *     utter_model *model; utter_error error;
 *     if (utter_model_open(&model, "path/to/checkpoint", NULL, &error) != UTTER_OK) { ... error.text }
 *     utter_stream_options options; utter_stream_options_init(&options, model);
 *     utter_stream *stream;
 *     utter_stream_open(&stream, model, &options, &error);
 *     utter_stream_text(stream, text, strlen(text), &error);
 *     utter_stream_finish(stream, &error);
 *     float pcm[1920]; size_t n;
 *     while (utter_stream_read(stream, pcm, 1920, &n, &error) == UTTER_OK) { play(pcm, n); }
 *     utter_stream_free(&stream); utter_model_close(&model);
 *
 * Threads: one thread at a time drives a model and its streams; different models are independent; only
 * utter_stream_cancel may be called from anywhere. The library prints nothing, never exits, reads no environment
 * variable and installs no signal handler but one for SIGBUS (see docs/api.md).
 *
 * Determinism: the samples depend on the weights, the text, the settings and the seed; not on the number of threads,
 * on how the text arrived, on the size of the reads or on other streams.
 *
 * Versions: a program goes on with later libraries of one soname. Option and answer structs carry the size that the
 * program knows, and the library touches no more of them; where a call has a `_sized` form, the plain one passes it.
 *
 * Errors: every call that can fail returns a status. Where it takes an `utter_error *` (which may be NULL), the
 * reason is written there in one sentence. Strings are UTF-8.
 */
#ifndef UTTER_H
#define UTTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define UTTER_API __attribute__((visibility("default")))
#else
#define UTTER_API
#endif

/* ---- Version ------------------------------------------------------------------------------- */
#define UTTER_VERSION_MAJOR 0
#define UTTER_VERSION_MINOR 1
#define UTTER_VERSION_PATCH 0

/* major * 1,000,000 + minor * 1,000 + patch of the library that runs. */
UTTER_API uint32_t utter_version_number(void);
UTTER_API const char *utter_version_text(void); /* the same as text, "0.1.0"; static */
/* ---- Status -------------------------------------------------------------------------------- */
/* Zero is success, positive values are ordinary outcomes, negative ones are failures. */
typedef enum utter_status {
    UTTER_OK = 0,
    UTTER_AGAIN = 1,        /* nothing yet: the stream waits for text, or for utter_model_step */
    UTTER_END = 2,          /* the stream has given everything */
    UTTER_E_ARGUMENT = -1,  /* the request is wrong: a value out of range, an unknown voice */
    UTTER_E_FILE = -2,      /* a file is missing, cannot be read, or is not what it should be */
    UTTER_E_MODEL = -3,     /* the checkpoint cannot do this, or its parts do not fit together */
    UTTER_E_MEMORY = -4,    /* out of memory */
    UTTER_E_IO = -5,        /* writing failed: disk full, pipe closed */
    UTTER_E_DEVICE = -6,    /* the device failed; every later call on the model says so too */
    UTTER_E_NUMBER = -7,    /* the weights led to a value that is not a number */
    UTTER_E_CANCELLED = -8, /* utter_stream_cancel, or a sink that asked to stop */
    UTTER_E_INTERNAL = -9,  /* a fault of this library; please report it */
} utter_status;

UTTER_API const char *utter_status_text(utter_status status); /* a short static name, never NULL */

typedef struct utter_error { /* why a call failed: one sentence, and where possible what to do */
    utter_status code;
    char text[4096];
} utter_error;

/* ---- Model --------------------------------------------------------------------------------- */
typedef struct utter_model utter_model;

typedef enum utter_pretokenizer {
    UTTER_PRETOKENIZER_OFFICIAL = 0, /* as the official package does for a checkpoint in a folder */
    UTTER_PRETOKENIZER_NATIVE = 1,   /* the pattern of the Qwen2 language models */
} utter_pretokenizer;

/* How the weights that every frame reads are held: 8 and 4 bits are less to read, at a small loss (docs/quality.md);
 * beside a packed talker a CPU's vocoder works with 16 bits. Embeddings and encoders stay as they are. */
typedef enum utter_weights {
    UTTER_WEIGHTS_STORED = 0, /* as the file has them */
    UTTER_WEIGHTS_Q8 = 1,
    UTTER_WEIGHTS_Q4 = 2,
    UTTER_WEIGHTS_Q8_PREDICTOR = 3, /* 8 bits for the predictor, which reads most of a frame's bytes */
    UTTER_WEIGHTS_BF16 = 4,         /* as the file has them, but a CPU's vocoder with 16 bits */
} utter_weights;

/* Notes that are no errors ("this checkpoint takes no instructions"); one line, no line break. */
typedef void utter_log_fn(void *user, const char *line);

typedef struct utter_model_options {
    size_t size; /* set by _init */
    /* "auto" (default): the first GPU that can be used; else, and with CPU kernels, the CPU. Or "cpu", "cuda:N" */
    const char *device;
    int n_threads; /* 0 (default): one for each core this process may use */
    int n_lanes;   /* streams that may be open at once; default 1; 0: as many as suit the device */
    utter_pretokenizer pretokenizer; /* default official */
    const char *cpu_kernels;         /* NULL: the best here; else the name of a set, see info */
    utter_log_fn *log;               /* default NULL: notes are dropped */
    void *log_user;
    /* Most memory, beside the lanes, to keep what utterances of one voice have in common, a clone's recording above
     * all; the least recently used is dropped. Changes no sample. 0: off; default 256 MiB. */
    uint64_t snapshot_bytes;
    utter_weights weights; /* default as stored; else packed while opening */
    /* Of a prompt utter_model_step reads at once what takes about so long, so that others wait no longer for their
     * frames. The samples do not depend on it. 0 (default): all of it. */
    double prompt_seconds;
    const char *cache; /* a folder for what is learnt of a model's heads; default NULL: none */
} utter_model_options;
UTTER_API void utter_model_options_init_sized(utter_model_options *options, size_t size);
static inline void utter_model_options_init(utter_model_options *options)
{
    utter_model_options_init_sized(options, sizeof *options);
}

/* What GPU "cuda:INDEX" is called, in name[size]; false: CUDA can use no such GPU here, and name says why. */
UTTER_API bool utter_gpu_name(char *name, size_t size, int index);

/* Opens a checkpoint: a folder in the official layout, a file of utter_model_quantize, or a repository's folder in the
 * cache of the hub's client; NULL is the voice that comes with the library. `options` may be NULL. On success *model
 * is the caller's, to be closed with utter_model_close; on failure *model is NULL. */
UTTER_API utter_status utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error);

/* Where utter_model_open would find what people name, in path[size]. Besides what that takes, `name` is a repository,
 * "Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice", or one of the short names of released models ("0.6b", "0.6b-base", "1.7b",
 * "1.7b-base", "design"), looked up in `cache`, a folder as the hub's client fills it (NULL: none); "builtin" is
 * NULL. Nothing is downloaded. A file or folder of that name comes first. */
UTTER_API utter_status utter_model_find(
    char *path, size_t size, const char *name, const char *cache, utter_error *error);

/* Told how much of a long work is done, 0 to 1; false stops it (UTTER_E_CANCELLED). May be NULL. */
typedef bool utter_progress_fn(void *user, double done);

/* Packs a checkpoint folder into one file, which utter_model_open takes in its place: packed weights (Q8 or Q4), the
 * vocoder's matrices in F16, every other tensor as it was, configs and vocabulary, and a hash over all. */
UTTER_API utter_status utter_model_quantize(
    const char *path, utter_weights weights, const char *file, utter_error *error);
UTTER_API utter_status utter_model_quantize_told(const char *path, utter_weights weights,
    const char *file, utter_progress_fn *progress, void *user, utter_error *error);

/* Frees the model and clears the handle. Streams of the model must have been freed before. */
UTTER_API void utter_model_close(utter_model **model);

typedef enum utter_model_kind {
    UTTER_MODEL_BASE = 0,         /* speaks with cloned voices */
    UTTER_MODEL_CUSTOM_VOICE = 1, /* speaks with preset voices */
    UTTER_MODEL_VOICE_DESIGN = 2, /* speaks with a voice described in words */
} utter_model_kind;

typedef struct utter_model_info {
    size_t size; /* set by the caller to sizeof *info */
    utter_model_kind kind;
    const char *kind_name;   /* "base", "custom_voice", "voice_design" */
    const char *size_name;   /* as the checkpoint calls itself: "0b6", "1b7" */
    const char *device;      /* "cpu", "cuda" */
    const char *kernels;     /* the set of kernels in use */
    const char *all_kernels; /* every set this machine can run, comma separated */
    bool takes_instructions;
    int sample_rate;   /* 24000 */
    int frame_samples; /* samples of one frame: 1920 */
    int n_codebooks;   /* codes of one frame: 16 */
    int codebook_size; /* codes are 0 .. codebook_size - 1 */
    int n_threads, n_lanes;
    int n_voices, n_languages;
    int width, n_layers; /* of the talker */
    int predictor_width, predictor_layers;
    int max_positions; /* rows and frames of one utterance */
    uint64_t talker_parameters, predictor_parameters, vocoder_parameters, all_parameters;
    uint64_t file_bytes, memory_bytes; /* mapped checkpoint files; taken on top of them */
    uint64_t frame_bytes; /* weights read for one: talker once, predictor for each code, vocoder */
    /* How most of them are held: "bf16", "f16", "f32", "q8", "q4"; "q8-predictor": the predictor's alone in 8 bits. */
    const char *weights;
    int n_snapshots; /* kept now, see utter_model_options.snapshot_bytes */
    uint64_t snapshot_bytes;
    int most_lanes;         /* that the memory of the GPU would hold; 0: no such bound */
    double device_gb_per_s; /* 1e9 bytes a second that the memory of the GPU can give; 0: not known */
    uint64_t talker_frame_bytes, predictor_frame_bytes, vocoder_frame_bytes; /* of frame_bytes */
    double step_s[7]; /* foretold of a GPU: a frame and its sound of 1, 2, 4 .. 64 lanes; 0: unknown */
} utter_model_info;

UTTER_API utter_status utter_model_get_info(const utter_model *model, utter_model_info *info);

/* Names in the order of the checkpoint; NULL when `index` is out of range. Owned by the model. */
UTTER_API const char *utter_model_voice_name(const utter_model *model, int index);
/* The dialect that a preset voice speaks when the language is Chinese or not given, or NULL. */
UTTER_API const char *utter_model_voice_dialect(const utter_model *model, int index);
UTTER_API const char *utter_model_language_name(const utter_model *model, int index);

/* Moves every stream that has what it needs one frame ahead, or a piece of its prompt: UTTER_OK when at least one
 * moved, UTTER_AGAIN when none could. A program with one stream needs only utter_stream_read. */
UTTER_API utter_status utter_model_step(utter_model *model, utter_error *error);
/* The same where nobody listens: frames wait until several get their sound at once, which costs less. */
UTTER_API utter_status utter_model_step_together(utter_model *model, utter_error *error);

/* Token ids of a text (control tokens in it included); *ids is freed with utter_memory_free. */
UTTER_API utter_status utter_model_tokenize(const utter_model *model, const char *text, size_t bytes,
    int32_t **ids, size_t *n_ids, utter_error *error);
UTTER_API void utter_memory_free(void *memory);

/* ---- Voice --------------------------------------------------------------------------------- */
typedef struct utter_voice utter_voice;

/* A preset voice of a custom-voice model, by name (any case). Unknown: the error lists the known. */
UTTER_API utter_status utter_voice_preset(
    utter_voice **voice, const utter_model *model, const char *name, utter_error *error);

typedef struct utter_recording { /* what was heard in one, before anything was changed */
    size_t size;                 /* set by the caller to sizeof *recording */
    int sample_rate, channels;
    double seconds;
    double peak;    /* full scale is 1 */
    double rms_db;  /* -INFINITY for digital silence */
    double clipped; /* share of the samples at full scale */
} utter_recording;

typedef struct utter_clone_options {
    size_t size;      /* set by _init */
    const char *name; /* of the voice, for people; NULL: the file's name */
    /* What the recording says, word for word: the voice sounds more like it. NULL: the x-vector alone */
    const char *transcript;
    const char *language;        /* of the recording, for people; NULL: not said */
    double max_seconds;          /* longer recordings are refused; default 120 */
    utter_progress_fn *progress; /* default NULL */
    void *progress_user;
    double from_seconds, to_seconds; /* only this part of a file; 0: to its end */
} utter_clone_options;
UTTER_API void utter_clone_options_init_sized(utter_clone_options *options, size_t size);
static inline void utter_clone_options_init(utter_clone_options *options)
{
    utter_clone_options_init_sized(options, sizeof *options);
}

/* A voice from a recording (wav, flac, ogg, opus, mp3; any rate, any number of channels) for a base model. What might
 * spoil it (too short or long, clipped, silent) is said through the model's log. `options` and `heard` may be NULL. */
UTTER_API utter_status utter_voice_clone(utter_voice **voice, utter_model *model,
    const char *sound_path, const utter_clone_options *options, utter_recording *heard,
    utter_error *error);
/* The same from samples in memory, mono at the model's rate, each in [-1, 1]. */
UTTER_API utter_status utter_voice_clone_samples(utter_voice **voice, utter_model *model,
    const float *pcm, size_t n_samples, const utter_clone_options *options, utter_error *error);

typedef struct utter_design_options {
    size_t size;          /* set by _init */
    const char *name;     /* of the voice, for people; NULL: "designed" */
    const char *text;     /* what the reference says; NULL: two sentences in `language` */
    const char *language; /* of the reference; NULL or "auto": the text decides, English without one */
    uint64_t seed;        /* another seed, another voice of the same description; default 0 */
    utter_progress_fn *progress; /* default NULL */
    void *progress_user;
} utter_design_options;
UTTER_API void utter_design_options_init_sized(utter_design_options *options, size_t size);
static inline void utter_design_options_init(utter_design_options *options)
{
    utter_design_options_init_sized(options, sizeof *options);
}

/* A voice described in words that stays: the voice-design model speaks a reference, which becomes a cloned voice (with
 * its transcript) for the base model. Takes a lane of `designer` while it runs (UTTER_AGAIN when all are taken). A
 * reference that the model does not end by itself is refused: its sound would not match its text. */
UTTER_API utter_status utter_voice_design(utter_voice **voice, utter_model *designer,
    const char *instruct, utter_model *base, const utter_design_options *options, utter_error *error);

/* Voice files: a cloned voice, sealed; docs/voices.md has the format. Saving replaces a file whole or not at all. */
UTTER_API utter_status utter_voice_save(const utter_voice *voice, const char *path, utter_error *error);
UTTER_API utter_status utter_voice_load(utter_voice **voice, const char *path, utter_error *error);

/* The weighted mean of the x-vectors of n cloned voices of one width (weights are scaled to sum 1). */
UTTER_API utter_status utter_voice_mix(utter_voice **voice, const utter_voice *const *voices,
    const double *weights, size_t n, const char *name, utter_error *error);

typedef enum utter_voice_kind {
    UTTER_VOICE_PRESET = 0,  /* of a custom-voice model */
    UTTER_VOICE_VECTOR = 1,  /* cloned: an x-vector */
    UTTER_VOICE_CONTEXT = 2, /* cloned: an x-vector, codes and transcript of a recording */
} utter_voice_kind;

/* Everything a voice holds; pointers are the voice's. */
typedef struct utter_voice_info {
    size_t size; /* set by the caller to sizeof *info */
    utter_voice_kind kind;
    const char *name, *language, *transcript, *provenance; /* NULL where there is none */
    int width;             /* of the x-vector and of the models that it fits; 0 for presets */
    const float *x_vector; /* [width] */
    int n_frames, n_codebooks;
    const int32_t *codes; /* [n_frames][n_codebooks] */
} utter_voice_info;

/* UTTER_OK when the model can speak with the voice, else the reason why not. */
UTTER_API utter_status utter_voice_fits(
    const utter_voice *voice, const utter_model *model, utter_error *error);
UTTER_API utter_status utter_voice_get_info(const utter_voice *voice, utter_voice_info *info);
UTTER_API const char *utter_voice_name(const utter_voice *voice);
UTTER_API void utter_voice_free(utter_voice **voice);

/* ---- Stream -------------------------------------------------------------------------------- */
typedef struct utter_stream utter_stream;

typedef enum utter_layout {
    UTTER_LAYOUT_AUTO = 0,   /* as the official package: full, but stream for clones */
    UTTER_LAYOUT_FULL = 1,   /* the whole text stands before the speech */
    UTTER_LAYOUT_STREAM = 2, /* a text token goes in with each frame; speech starts with the first */
} utter_layout;

/* How one of the two heads chooses. temperature 0 is greedy; top_k 0 and top_p 1 are off. */
typedef struct utter_sampling {
    float temperature;        /* 0 .. 100 */
    int top_k;                /* 0 .. */
    float top_p;              /* above 0 .. 1 */
    float repetition_penalty; /* above 0 .. 1000; 1 is off; the predictor has none and ignores it */
} utter_sampling;

typedef struct utter_stream_options {
    size_t size;              /* set by _init */
    const utter_voice *voice; /* NULL: none (voice design; or the model's own choice) */
    const char *language;     /* a name or a code ("en", "pt-BR"); NULL or "auto": the model decides */
    const char *instruct;     /* how to speak; for a voice-design model, the voice itself; NULL: none */
    utter_layout layout;
    utter_sampling talker;    /* code 0 of a frame; defaults from the checkpoint */
    utter_sampling predictor; /* the other codes of a frame */
    uint64_t seed;            /* default 0 */
    int max_frames;           /* at most this many frames, 80 ms each; default from the checkpoint */
    bool guard;               /* default true: end a stuck or endlessly silent stream; docs/model.md */
    bool words;               /* default false: tell when each word is heard, utter_stream_words */
    bool plain; /* default false; true: control tokens in texts ("<|im_end|>") are characters */
} utter_stream_options;

/* Fills in the real defaults of this checkpoint. */
UTTER_API utter_status utter_stream_options_init_sized(
    utter_stream_options *options, size_t size, const utter_model *model);
static inline utter_status utter_stream_options_init(
    utter_stream_options *options, const utter_model *model)
{
    return utter_stream_options_init_sized(options, sizeof *options, model);
}

/* Opens an utterance on a free lane of the model (UTTER_AGAIN when all are taken). Strings and voice are copied. */
UTTER_API utter_status utter_stream_open(
    utter_stream **stream, utter_model *model, const utter_stream_options *options, utter_error *error);

/* Gives the next piece of text, cut anywhere, also inside a character. Line breaks at the very beginning and end of the
 * whole text are dropped. In the stream layout speech begins as soon as the first token is certain, else at the end. */
UTTER_API utter_status utter_stream_text(
    utter_stream *stream, const char *text, size_t bytes, utter_error *error);
/* No more text will come. An empty text is an error here. */
UTTER_API utter_status utter_stream_finish(utter_stream *stream, utter_error *error);

/* Takes up to `capacity` samples (1 or more) in [-1, 1]; *n says how many. Makes new frames as needed, so a lone
 * caller just reads. UTTER_OK: *n > 0. UTTER_AGAIN: text is needed. UTTER_END: all was given, utter_stream_stats tells
 * why. After a failure every later read fails the same way. Where a listener can wait, up to 8 frames come at once. */
UTTER_API utter_status utter_stream_read(
    utter_stream *stream, float *pcm, size_t capacity, size_t *n, utter_error *error);
/* The same without making new frames: for those who call utter_model_step themselves. */
UTTER_API utter_status utter_stream_take(
    utter_stream *stream, float *pcm, size_t capacity, size_t *n, utter_error *error);

/* A held stream is passed over by utter_model_step until it is let go: for those who decide themselves which
 * streams come next. What was made can be read, utter_stream_read gives UTTER_AGAIN after it. Streams begin let go. */
UTTER_API void utter_stream_hold(utter_stream *stream, bool held);

/* The codes of the frames whose sound there is: *n_frames times n_codebooks. Valid until the next call on it. */
UTTER_API const int32_t *utter_stream_codes(const utter_stream *stream, size_t *n_frames);

typedef struct utter_word {
    uint64_t at, bytes;  /* where it stands in the text as it was given, markup inside it included */
    uint64_t start, end; /* when it is heard, samples from the beginning of the sound */
    float certainty;     /* 0 .. 1: how surely the model was there; 0: not known */
    bool final;          /* it changes no more, but for `skipped` when the speech has ended */
    bool skipped;        /* nothing of the sound is known to say it */
    uint64_t later[3];   /* 0: for what later versions tell, so that lists keep their stride */
} utter_word;

/* The words that have begun (cut as UAX 29 says), about two frames later; what is not final may change or go. Where no
 * heads are known that follow the text, times are shares of the sound. NULL without options.words; valid until the next
 * call on the stream or of utter_model_step. */
UTTER_API const utter_word *utter_stream_words(utter_stream *stream, size_t *n_words);

/* Ends the stream; what was made can still be read, then comes UTTER_END with UTTER_FINISH_CANCELLED. The
 * one call that any thread, or a signal handler, may make. */
UTTER_API void utter_stream_cancel(utter_stream *stream);
/* Frees the stream and its lane and clears the handle. */
UTTER_API void utter_stream_free(utter_stream **stream);

typedef enum utter_finish {
    UTTER_FINISH_NONE = 0,   /* still speaking */
    UTTER_FINISH_EOS,        /* the model ended the utterance */
    UTTER_FINISH_MAX_FRAMES, /* max_frames */
    UTTER_FINISH_CONTEXT,    /* the model's positions are used up */
    UTTER_FINISH_CEILING,    /* guard: far longer than the text can take */
    UTTER_FINISH_LOOP,       /* guard: the same codes over and over */
    UTTER_FINISH_SILENCE,    /* guard: endless silence after the text */
    UTTER_FINISH_CANCELLED,  /* utter_stream_cancel */
    UTTER_FINISH_ERROR,      /* a read has failed */
    UTTER_FINISH_SAID,       /* guard, with words: all was said, and it went on */
    UTTER_FINISH_STUCK,      /* guard, with words: it did not get beyond its last word */
} utter_finish;

/* "eos", "max_frames", ...; static, never NULL. */
UTTER_API const char *utter_finish_text(utter_finish finish);

typedef struct utter_stream_stats {
    size_t size; /* set by the caller to sizeof *stats */
    utter_finish finish;
    int n_frames;      /* frames made, with their sound */
    int n_text_tokens; /* tokens of the text, wrapper not counted */
    int n_rows;        /* prompt rows before the first frame, as far as they have been read */
    double prompt_s, prefill_s, talker_s, predictor_s, vocoder_s; /* seconds so far, by stage */
    double first_sound_s;   /* from the first text (stream layout) or from finish (full) on */
    int n_kept_rows;        /* of n_rows: taken from a snapshot */
    double wait_s;          /* of all that: the caller's thread waited for the device */
    bool words_approximate; /* the times of words are shares of the sound */
} utter_stream_stats;

UTTER_API utter_status utter_stream_get_stats(const utter_stream *stream, utter_stream_stats *stats);

typedef struct utter_head {
    int layer, head; /* of the talker */
    bool follows;    /* words are timed by it */
    double score;    /* 0 .. 1: how well a way through the text explains what it looks at */
} utter_head;

/* Speaks n texts with `options` (NULL: the defaults), ranks all heads of the talker, and times words by the one that
 * follows the text best from now on; it is kept in the file `path` (NULL: the cache). *heads, the best first, is the
 * caller's, to be freed with utter_memory_free. Where none follows, times stay approximate. No stream may be open. */
UTTER_API utter_status utter_model_align_heads(utter_model *model, const utter_stream_options *options,
    const char *const *texts, size_t n, const char *path, utter_head **heads, size_t *n_heads,
    utter_error *error);

/* ---- Reading ------------------------------------------------------------------------------- */
/* Text of any length, from a sentence to a book: cut where a reader breathes, spoken piece after piece as streams, and
 * joined with the pauses that its punctuation asks for. It takes what a stream takes, and memory that does not grow
 * with the sound. A text that is one piece gives the samples of utter_stream. */
typedef struct utter_reading utter_reading;

/* What a text holds besides words (utter(1), MARKUP). AUTO: SSML where it begins so, else tags like [pause:1s]. */
enum { UTTER_MARKUP_NONE, UTTER_MARKUP_AUTO, UTTER_MARKUP_TAGS, UTTER_MARKUP_SSML };
/* The voice that a text calls by `name`: *voice goes to who asks. */
typedef utter_status utter_find_voice_fn(
    void *user, const char *name, utter_voice **voice, utter_error *error);

typedef struct utter_piece { /* what became of a piece of the text */
    size_t size;
    uint64_t index;     /* 0, 1, ... */
    uint64_t at, bytes; /* of the source */
    uint64_t seed;      /* that it was spoken with: each try takes the next */
    utter_finish finish;
    int tries;
    bool whole;           /* false: the last try was ended by the guard, too short, or skipped a word */
    double seconds;       /* of its own sound */
    const int32_t *codes; /* n_frames frames, valid during the call */
    size_t n_frames;
    uint64_t begin, end; /* in the reading's sound, in samples; the pause behind it belongs to it */
    const char *text;    /* as it was spoken, valid during the call */
    size_t text_bytes;
    const size_t *origins; /* [text_bytes + 1]: the source's byte of each; NULL without markup */
    bool heading;
} utter_piece;

/* Told of each piece when it has ended, before the sound of the next. */
typedef void utter_piece_fn(void *user, const utter_piece *piece);
/* Told of the text as it is written, without its markup, in its order, while it is given: text[0..n) stands for the
 * source's bytes [at, at + bytes), one for one where they are as many. Valid during the call. */
typedef void utter_written_fn(void *user, uint64_t at, uint64_t bytes, const char *text, size_t n);

typedef struct utter_reading_options {
    size_t size; /* set by _init */
    /* What the guard ended, of wrong length or (words asked for, on a CPU) lacking one, is said again; default 2 */
    int retries;
    /* Default true: sound is given while it is made, and what is said again is heard again. False, for files: a
     * piece is given when it is whole, and what was not whole is not heard. */
    bool live;
    int lanes; /* pieces that are made at the same time, where not live and the model has so many; default 1 */
    int max_frames; /* of all pieces together, told as UTTER_FINISH_MAX_FRAMES; 0 (default): no limit */
    int piece_length; /* of a piece, in letters; 0 (default): what the model speaks reliably */
    double clause_pause_s, sentence_pause_s, paragraph_pause_s;
    utter_piece_fn *piece; /* default NULL */
    void *piece_user;
    int markup;          /* default none. What is left out is told through the model's log */
    const char *cast;    /* lines "NAME = voice": who speaks lines that begin with "NAME:" */
    const char *lexicon; /* lines "term = respelling" */
    bool spell_out;      /* numbers, dates and the like in words */
    utter_find_voice_fn *find_voice; /* NULL: the presets of the model */
    void *find_voice_user;
    bool carry; /* each piece goes on from the one before: a voice cloned with its transcript */
    utter_written_fn *written; /* default NULL */
    void *written_user;
} utter_reading_options;
UTTER_API void utter_reading_options_init_sized(utter_reading_options *options, size_t size);
static inline void utter_reading_options_init(utter_reading_options *options)
{
    utter_reading_options_init_sized(options, sizeof *options);
}

/* Opens a reading on a free lane of the model (UTTER_AGAIN when all are taken), which it keeps from piece to piece.
 * Both options may be NULL. max_frames of a stream bounds each piece. */
UTTER_API utter_status utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error);

/* As of a stream. */
UTTER_API utter_status utter_reading_text(
    utter_reading *reading, const char *text, size_t bytes, utter_error *error);
UTTER_API utter_status utter_reading_finish(utter_reading *reading, utter_error *error);
UTTER_API utter_status utter_reading_read(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error);
UTTER_API utter_status utter_reading_take(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error);
UTTER_API void utter_reading_hold(utter_reading *reading, bool held);
UTTER_API void utter_reading_cancel(utter_reading *reading); /* from any thread, or a signal handler */
UTTER_API void utter_reading_free(utter_reading **reading);

typedef struct utter_reading_stats {
    size_t size; /* set by the caller to sizeof *stats */
    /* UTTER_FINISH_EOS, or why its last piece that was not whole ended; of one that left words out, silence. */
    utter_finish finish;
    uint64_t n_pieces, n_retries, n_broken; /* pieces that ended; said again; not whole in the end */
    uint64_t at, bytes; /* of the source: the piece that is spoken, or the last one */
    uint64_t n_frames, n_text_tokens, n_rows;
    double prompt_s, prefill_s, talker_s, predictor_s, vocoder_s, first_sound_s;
    double wait_s;          /* as of a stream */
    bool words_approximate; /* as of a stream */
} utter_reading_stats;

/* As of a stream, in the whole's source and sound; the first of *n is word *first. Those of a piece that has ended come
 * once more, final, those of the piece that is spoken where it is heard live. */
UTTER_API const utter_word *utter_reading_words(utter_reading *reading, uint64_t *first, size_t *n);
UTTER_API utter_status utter_reading_get_stats(
    const utter_reading *reading, utter_reading_stats *stats);

/* A text as a reading with these options says it: words and tags, a line for each change of them, to be freed with
 * utter_memory_free. Language and voice are those of the reading, by name, or NULL; `log` is told what is left out. */
UTTER_API utter_status utter_text_spoken(char **spoken, const char *text, size_t bytes,
    const utter_reading_options *options, const char *language, const char *voice, utter_log_fn *log,
    void *log_user, utter_error *error);

/* ---- One call ------------------------------------------------------------------------------ */
typedef bool utter_sink_fn(
    void *user, const float *pcm, size_t n); /* samples as they are made; false stops */

/* Speaks `text` to the end. `options` may be NULL. */
UTTER_API utter_status utter_say(utter_model *model, const char *text,
    const utter_stream_options *options, utter_sink_fn *sink, void *user, utter_error *error);

/* ---- Codec --------------------------------------------------------------------------------- */
typedef enum utter_codec_rule {
    UTTER_CODEC_WHOLE = 0,           /* one stream without seams: what utter_stream_read gives */
    UTTER_CODEC_OFFICIAL_CHUNKS = 1, /* the official 300-frame chunks with 25 frames of context */
} utter_codec_rule;

/* Decodes `n_frames` frames of codes, `chunk` (0: the library's choice) at a time; takes a lane while it runs. */
UTTER_API utter_status utter_codec_decode(utter_model *model, const int32_t *codes, size_t n_frames,
    utter_codec_rule rule, int chunk, utter_sink_fn *sink, void *user, utter_error *error);

/* A recording -> codes: *codes is the caller's, to be freed with utter_memory_free; n_codebooks codes a frame. */
UTTER_API utter_status utter_codec_encode(utter_model *model, const char *sound_path, int32_t **codes,
    size_t *n_frames, utter_progress_fn *progress, void *user, utter_error *error);

/* ---- Sound files --------------------------------------------------------------------------- */
typedef struct utter_sound utter_sound;
/* Floats for wav and raw only. */
typedef enum utter_sample { UTTER_SAMPLE_S16 = 0, UTTER_SAMPLE_F32 = 1 } utter_sample;
/* Starts a sound file; `format` is "wav", "flac", "ogg", "opus", "mp3" or "raw", or NULL to go by the name. "-" is
 * standard output. The file appears under its name only when it is closed: a crash leaves nothing half written. */
UTTER_API utter_status utter_sound_create(utter_sound **sound, const char *path, const char *format,
    utter_sample sample, int sample_rate, utter_error *error);
/* Before the first sample: its "title", "artist", "album" or "track". Wav and raw keep nothing of it. */
UTTER_API utter_status utter_sound_tag(
    utter_sound *sound, const char *key, const char *text, utter_error *error);
UTTER_API utter_status utter_sound_write(
    utter_sound *sound, const float *pcm, size_t n, utter_error *error);
/* Completes the file and frees the handle, also when it fails (then no file is left); _abort drops the file. */
UTTER_API utter_status utter_sound_close(utter_sound **sound, utter_error *error);
UTTER_API void utter_sound_abort(utter_sound **sound);

/* ---- Proof --------------------------------------------------------------------------------- */
typedef struct utter_check { /* how a stage agrees with the golden file */
    const char *stage;       /* "tokens", "prompt", "talker", "codes", "samples" ... */
    bool passed;
    double value, limit; /* share of equal codes, or the largest difference, and what is allowed */
    const char *detail;  /* one line for people */
} utter_check;

typedef void utter_check_fn(void *user, const utter_check *check);

/* Runs what a golden file (tools/oracle) holds on this model, stage by stage. UTTER_OK: all ran, passed or not. */
UTTER_API utter_status utter_model_verify(utter_model *model, const char *golden_path,
    utter_check_fn *report, void *user, utter_error *error);

#ifdef __cplusplus
}
#endif
#endif
