/* SPDX-License-Identifier: Apache-2.0
 * The door to a device: about a dozen calls at the level of the model. A backend owns everything that an
 * utterance changes, in *lanes*: caches, positions, history, generator, vocoder state. `frame` and
 * `vocode` may only queue work; `collect` waits. One thread calls at a time. After UTTER_E_DEVICE every
 * call but close fails the same way. */
#ifndef MODEL_BACKEND_H
#define MODEL_BACKEND_H

#include "model/model.h"
#include "model/row.h"

struct backend; /* each backend's own */

struct backend_options {
    int n_lanes;
    int n_threads;           /* 0: one for each available core */
    const char *cpu_kernels; /* NULL: the best */
    int lane_positions;      /* rows and frames that a lane must be able to hold */
    /* What the user asked for. A backend that reads packed weights finds the model packed so (but a file may hold
     * packed weights whatever was asked); another one makes of them what it likes. */
    utter_weights weights;
    int device;     /* which one, where there are several: cuda:N */
    const char *as; /* NULL, or a lesser one by name that it is to be no more than, for measurements */
};

/* Whether talker and predictor stay as the model has them. */
static inline bool backend_keeps_weights(utter_weights weights)
{
    return weights == UTTER_WEIGHTS_STORED || weights == UTTER_WEIGHTS_BF16;
}

struct lane_settings {
    utter_sampling talker, predictor;
    uint64_t seed;
    int min_frames; /* the end is not chosen before this many frames: 2 in the official package */
};

struct frame_in {
    int lane;
    int32_t text; /* text id that joins the codes of the frame before; ignored for the first frame */
    /* NULL, or n_codebooks codes that the lane goes on with in place of the chosen ones; the chosen
     * ones are still reported. For comparisons. */
    const int32_t *forced;
};

/* A head of the talker that is watched, to learn which row of the text it looks at. */
struct talker_head {
    int layer, head;
};

/* Of a code 0, or the end, by the logits as they are (no temperature, no penalty): the logarithm of its likelihood, and
 * the mean of that over all that may be chosen. Both 0: not known. */
struct likelihood {
    float log_p, usual_log_p;
};

/* What collect hands out; pointers are the lane's and valid until its next frame, vocode or reset. */
struct lane_out {
    bool end;             /* the end token was chosen: no codes */
    bool not_a_number;    /* a logit or a sample was NaN or infinite */
    int n_frames;         /* 0 or 1 after frame; more after feed */
    const int32_t *codes; /* [n_frames][n_codebooks], as chosen */
    const float *pcm;     /* [n_frames * frame_samples] once vocoded, else NULL */
    size_t n_samples;
    /* After frame, of a lane that looks at rows: [heads watched][n_scores], of the position that chose this frame, the
     * scaled product of query and key (what softmax takes) with each row from the first on that is looked at. NULL: it
     * looks at none; or this is its first frame, whose position a backend may have passed as a row of the prompt. */
    const float *scores;
    int n_scores;
    /* With them: of the code 0 that the lane goes on with, or of the end. A backend may leave that to weigh. */
    struct likelihood likelihood;
    double talker_s, predictor_s, vocoder_s; /* time of this frame, where the backend knows it */
    /* Of a lane's first frame: the time of the prompt in front of it, where prefill only queues; -1 where that is not
     * known, for others' prompts came with it; 0 where prefill waits. Of later frames it means nothing. */
    double prefill_s;
    double wait_s; /* that collect waited for the device */
};

/* Named activations for tests; data is [rows][cols] fp32, valid during the call. A long prompt comes in pieces, each
 * through all layers before the next; `index` of "prompt" is the first row of the piece. Names:
 *   "prompt"            the embedded rows that prefill starts from, row `index` and on   [n][talker width]
 *   "talker.layer"      after layer `index`                           [n][talker width]
 *   "talker.hidden"     after the final norm, last position           [1][talker width]
 *   "talker.logits"     before any processing                         [1][codec_vocabulary]
 *   "predictor.logits"  codebook `index` (1 ..)                       [1][predictor_vocabulary]
 *   "vocoder.STAGE"     "quantizer", "pre_conv", "stack", "upsample" (index), "first", "block" (index):
 *                       [t][channels] */
typedef void backend_tap_fn(
    void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols);

enum { BACKEND_FORETOLD = 7 };

struct backend_memory {
    uint64_t shared_bytes;   /* beside the mapped files */
    uint64_t lane_bytes;     /* fixed, each lane */
    uint64_t position_bytes; /* each position of a lane, as it is used */
    uint64_t kept_bytes;     /* of the vocoder's state in a snapshot */
    int most_lanes;          /* that the device's memory would hold; 0: no such bound */
    double bytes_per_s;      /* that the device's memory can give; 0: not known */
    /* Foretold: a frame and its sound of 1, 2, 4 .. lanes; 0: not known. */
    double step_s[BACKEND_FORETOLD];
};

/* What lane_keep took out of a lane; each backend's own. */
struct backend_snapshot;

/* Told how much of a long piece of work is done, 0 to 1; false stops it. */
typedef bool backend_progress_fn(void *user, double done);

struct backend_ops {
    const char *name; /* "cpu" */
    /* Frames of a lane that are best vocoded together where nobody waits for their sound; feed takes them then.
     * 0: none. */
    int gathers;
    bool reads_packed; /* takes a model whose talker and predictor are packed (weights/pack.h) */
    /* How many lanes suit the device, where nobody says how many there should be; asked before `open`, whose options
     * these are but for n_lanes. NULL: it does not depend on the device. */
    int (*suiting_lanes)(const struct model *model, const struct backend_options *options);
    utter_status (*open)(struct backend **b, const struct model *model,
        const struct backend_options *options, utter_error *error);
    void (*close)(struct backend **b);
    /* A short static description of the kernels in use, and of all that would run here. */
    void (*kernels)(const struct backend *b, const char **used, const char **all, int *n_threads);

    /* Empties a lane: positions, history, generator, vocoder state. */
    utter_status (*lane_reset)(
        struct backend *b, int lane, const struct lane_settings *settings, utter_error *error);
    /* Runs n rows through the talker at the lane's next positions and keeps the last hidden state and logits. */
    utter_status (*prefill)(
        struct backend *b, int lane, const struct row *rows, int n, utter_error *error);
    /* Makes room for the lane's next frame; UTTER_E_MEMORY: there is none for this lane, and others may go on. NULL:
     * every lane always has room. */
    utter_status (*room)(struct backend *b, int lane, utter_error *error);
    /* One frame for each of n different lanes: (not for the first) a talker step, then the choice of code 0, then
     * the predictor. The frame waits in the lane for vocode, in place of what waited there. */
    utter_status (*frame)(struct backend *b, const struct frame_in *in, int n, utter_error *error);
    /* Puts known codes, [n_frames][n_codebooks], where frame would have put its own. */
    utter_status (*feed)(
        struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error);
    /* Decodes all waiting frames of each lane. */
    utter_status (*vocode)(struct backend *b, const int *lanes, int n, utter_error *error);
    utter_status (*collect)(struct backend *b, int lane, struct lane_out *out, utter_error *error);

    /* The same as feed and vocode over any number of frames, but no samples are wanted: only the vocoder's state that
     * is left counts, and must be the same to the bit. NULL: the backend has no shorter way. */
    utter_status (*prime)(
        struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error);

    /* Snapshots: what many utterances have in common is computed once. All three are NULL where a backend has none.
     * lane_keep copies what a prefilled lane holds before its first frame: keys and values of its first n_rows (1 ..
     * rows prefilled) positions, and the vocoder's state when `vocoder` says so. It takes n_rows * position_bytes, and
     * kept_bytes for the vocoder. lane_resume puts it into a lane that was just reset; the rows that follow are then
     * prefilled (at least one), and everything must come out as without the snapshot, to the bit. */
    utter_status (*lane_keep)(struct backend *b, int lane, int n_rows, bool vocoder,
        struct backend_snapshot **snapshot, utter_error *error);
    utter_status (*lane_resume)(
        struct backend *b, int lane, const struct backend_snapshot *snapshot, utter_error *error);
    void (*snapshot_free)(
        struct backend *b, struct backend_snapshot **snapshot); /* accepts NULL in it */

    /* Which heads of the talker are watched, in all lanes; n 0: none. Frames are the same to the bit. Lanes that look
     * at rows must be told so again. NULL: the backend watches none. */
    utter_status (*watch)(
        struct backend *b, const struct talker_head *heads, int n, utter_error *error);
    /* A lane that has no frame yet looks at its rows `begin` to `end`, those that it has by then, from its first frame
     * to its next reset. */
    utter_status (*look)(struct backend *b, int lane, int begin, int end, utter_error *error);
    /* How well rows explain what was said: as prefill, of a lane without frames, and for each row i with codes[i] at
     * least 0 how likely that code 0 is behind it -> likelihoods[i]; waits for them. The lane is then good for more of
     * this, or a reset. UTTER_E_MEMORY: there is no room for this lane. NULL: the backend cannot tell. */
    utter_status (*weigh)(struct backend *b, int lane, const struct row *rows, int n,
        const int32_t *codes, struct likelihood *likelihoods, utter_error *error);

    /* A recording at the codec's rate, n_samples (at least 1) finite samples, -> *n_frames frames of codes,
     * ceil(n_samples / frame_samples) of them; UTTER_E_ARGUMENT when that is more than `capacity_frames`, UTTER_E_MODEL
     * when the checkpoint has no encoder, UTTER_E_CANCELLED when `progress` (may be NULL) says so. */
    utter_status (*encode)(struct backend *b, const float *pcm, size_t n_samples, int32_t *codes,
        size_t capacity_frames, size_t *n_frames, backend_progress_fn *progress, void *user,
        utter_error *error);
    /* Log-mel features (audio/mel.h), [n_mels][128], at least 5 -> the x-vector, [speaker_width];
     * UTTER_E_MODEL when the checkpoint has no speaker encoder. */
    utter_status (*speaker)(
        struct backend *b, const float *mels, size_t n_mels, float *vector, utter_error *error);

    void (*tap)(struct backend *b, backend_tap_fn *fn, void *user); /* fn NULL: off */
    void (*memory)(const struct backend *b, struct backend_memory *memory);
};

extern const struct backend_ops cpu_backend;
extern const struct backend_ops cuda_backend; /* in builds with UTTER_CUDA */

/* feed and vocode take at most this many frames of a lane at once. */
enum { BACKEND_MAX_FEED = 32 };

#endif
