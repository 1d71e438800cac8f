/* SPDX-License-Identifier: Apache-2.0
 * Checks of what comes through the backend door, in the words of every device. */
#include "model/request.h"

utter_status request_open(const struct backend_options *options, utter_error *error)
{
    if (options->n_lanes < 1 || options->lane_positions < 1) {
        return error_set(error, UTTER_E_ARGUMENT, "%d lanes of %d positions: at least one of each",
            options->n_lanes, options->lane_positions);
    }
    return UTTER_OK;
}

utter_status request_lane(int lane, int n_lanes, utter_error *error)
{
    if (lane < 0 || lane >= n_lanes) {
        return error_set(error, UTTER_E_ARGUMENT, "lane %d: there are %d", lane, n_lanes);
    }
    return UTTER_OK;
}

utter_status request_watch(
    const struct config *config, const struct talker_head *heads, int n, utter_error *error)
{
    const struct stack_config *t = &config->talker;
    bool good = n >= 0 && n <= t->n_layers * t->n_heads;
    for (int i = 0; good && i < n; i++) {
        good = heads[i].layer >= 0 && heads[i].layer < t->n_layers && heads[i].head >= 0 &&
               heads[i].head < t->n_heads;
        for (int k = 0; good && k < i; k++) {
            good = heads[k].layer != heads[i].layer || heads[k].head != heads[i].head;
        }
    }
    return good ? UTTER_OK
                : error_set(error, UTTER_E_ARGUMENT,
                      "heads to watch: the talker has %d layers of %d, and each is told once",
                      t->n_layers, t->n_heads);
}

utter_status request_look(const struct request_lane *lane, int begin, int end, utter_error *error)
{
    if (begin < 0 || end < begin || end > lane->room || lane->n_frames > 0) {
        return error_set(error, UTTER_E_ARGUMENT,
            "rows %d to %d are to be looked at, after %u frames: a lane holds %lld", begin, end,
            (unsigned)lane->n_frames, (long long)lane->room);
    }
    return UTTER_OK;
}

utter_status request_room(const struct request_lane *lane, int n, utter_error *error)
{
    if (n > lane->room - lane->position) {
        return error_set(error, UTTER_E_MODEL, "%lld positions and %d more: a lane holds %lld",
            (long long)lane->position, n, (long long)lane->room);
    }
    return UTTER_OK;
}

static bool row_fits(const struct config *config, const struct row *row)
{
    if (row->text < -1 || row->text >= config->text_vocabulary) {
        return false;
    }
    if (row->codec == ROW_ID) {
        return row->id >= 0 && row->id < config->codec_vocabulary;
    }
    for (int j = 0; row->codec == ROW_CODES && j < config->n_codebooks; j++) {
        int limit = j == 0 ? config->codec_vocabulary : config->predictor_vocabulary;
        if (row->codes[j] < 0 || row->codes[j] >= limit) {
            return false;
        }
    }
    return true;
}

utter_status request_rows(const struct config *config, const struct request_lane *lane,
    const struct row *rows, int n, utter_error *error)
{
    utter_status status = request_room(lane, n, error);
    if (status) {
        return status;
    }
    if (n < 1 || lane->n_frames > 0) {
        return error_set(error, UTTER_E_ARGUMENT,
            "a prompt of %d rows after %u frames: rows come first", n, (unsigned)lane->n_frames);
    }
    for (int i = 0; i < n; i++) {
        if (!row_fits(config, &rows[i])) {
            return error_set(error, UTTER_E_ARGUMENT, "row %d: an id is outside its table", i);
        }
    }
    return UTTER_OK;
}

utter_status request_weigh(const struct config *config, const int32_t *codes, int n, utter_error *error)
{
    for (int i = 0; i < n; i++) {
        if (codes[i] >= config->codec_vocabulary) {
            return error_set(error, UTTER_E_ARGUMENT, "the code behind row %d is outside its table", i);
        }
    }
    return UTTER_OK;
}

bool request_codes_fit(const struct config *config, const int32_t *codes, int n_frames)
{
    for (int i = 0; i < n_frames * config->n_codebooks; i++) {
        if (codes[i] < 0 || codes[i] >= config->predictor_vocabulary) {
            return false;
        }
    }
    return true;
}

utter_status request_frame(const struct config *config, const struct request_lane *lane,
    const struct frame_in *in, utter_error *error)
{
    if (!lane->ready && (lane->n_frames == 0 || lane->ended)) {
        return error_set(error, UTTER_E_ARGUMENT, "lane %d: %s", in->lane,
            lane->ended ? "its utterance has ended" : "a frame needs a prompt");
    }
    if (!lane->ready && (in->text < -1 || in->text >= config->text_vocabulary)) {
        return error_set(error, UTTER_E_ARGUMENT, "text id %d: outside the vocabulary", in->text);
    }
    if (in->forced && !request_codes_fit(config, in->forced, 1)) {
        return error_set(
            error, UTTER_E_ARGUMENT, "lane %d: a forced code is outside its codebook", in->lane);
    }
    return lane->ready ? UTTER_OK : request_room(lane, 1, error);
}

utter_status request_feed(
    const struct config *config, const int32_t *codes, int n_frames, utter_error *error)
{
    if (n_frames < 1 || n_frames > BACKEND_MAX_FEED || !request_codes_fit(config, codes, n_frames)) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%d frames of known codes: 1 to %d, each code below %d", n_frames, BACKEND_MAX_FEED,
            config->predictor_vocabulary);
    }
    return UTTER_OK;
}

utter_status request_prime(
    const struct config *config, const int32_t *codes, int n_frames, utter_error *error)
{
    if (n_frames < 1 || !request_codes_fit(config, codes, n_frames)) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%d frames of known codes: at least 1, each code below %d", n_frames,
            config->predictor_vocabulary);
    }
    return UTTER_OK;
}

utter_status request_encode(const struct model *model, size_t n_samples, size_t n_frames,
    size_t capacity_frames, utter_error *error)
{
    if (!model->has_encoder) {
        return error_set(error, UTTER_E_MODEL, "this checkpoint has no codec encoder");
    }
    if (n_frames < 1 || n_frames > capacity_frames) {
        return error_set(error, UTTER_E_ARGUMENT,
            "a recording of %zu samples: %zu frames, room for %zu", n_samples, n_frames,
            capacity_frames);
    }
    return UTTER_OK;
}

/* Mirrored ends need one frame more than a convolution reaches. */
utter_status request_speaker(const struct model *model, size_t n_mels, utter_error *error)
{
    const struct speaker_config *s = &model->config->speaker;
    if (!model->has_speaker) {
        return error_set(error, UTTER_E_MODEL,
            "this checkpoint has no speaker encoder (cloning takes a Base model; this one is %s)",
            model->config->kind_name);
    }
    for (int i = 0; i < s->n_blocks; i++) {
        size_t reach = (size_t)(s->taps[i] / 2) * (size_t)s->dilations[i];
        if (n_mels <= reach) {
            return error_set(error, UTTER_E_ARGUMENT,
                "a recording of %zu feature frames is too short for the speaker encoder, which needs "
                "%zu",
                n_mels, reach + 1);
        }
    }
    return UTTER_OK;
}
