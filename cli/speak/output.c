/* SPDX-License-Identifier: Apache-2.0
 * Sound out. */
#include "cli/speak/output.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/report.h"

int output_check(const char *path)
{
    struct stat about;
    struct file_out *out;
    utter_error error = {0};
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
        return 0; /* a reader of a pipe would take it for the end */
    }
    utter_status status = file_out_open(&out, path, &error);
    file_out_abort(&out);
    return status ? fail_output(status, &error) : 0;
}

bool output_is_heard(const char *path)
{
    struct stat about;
    bool dash = path && strcmp(path, "-") == 0;
    return dash && (fstat(STDOUT_FILENO, &about) != 0 || !S_ISREG(about.st_mode));
}

int output_open(struct output *output, const struct settings *settings, bool may_play, int sample_rate)
{
    *output = (struct output){.path = settings->output.text};
    output->effects = effects_new(&(struct effects_settings){settings->speed.number,
                                      settings->volume.number, (int)settings->rate.integer},
        sample_rate);
    if (!output->effects) {
        return fail(2, "out of memory");
    }
    output->rate = sample_rate = effects_rate(output->effects);
    if (!settings->output.given && may_play && !settings->format.given) {
        output->player = player_open(sample_rate);
        if (output->player) {
            return 0;
        }
    }
    if (!output->path && settings->format.given && strcmp(settings->format.text, "wav") != 0) {
        return fail(1, "--format %s: needs a name for the file (-o FILE)", settings->format.text);
    }
    output->path = output->path ? output->path : "utter.wav";
    bool dash = strcmp(output->path, "-") == 0;
    if (dash && isatty(STDOUT_FILENO)) {
        return fail(1,
            "-o -: standard output is a terminal (send it somewhere: | aplay -t raw -f S16_LE -r %d)",
            sample_rate);
    }
    utter_error error = {0};
    utter_sample sample =
        strcmp(settings->sample.text, "f32") == 0 ? UTTER_SAMPLE_F32 : UTTER_SAMPLE_S16;
    utter_status status = utter_sound_create(
        &output->sound, output->path, settings->format.text, sample, sample_rate, &error);
    return status ? fail_output(status, &error) : 0;
}

static int write_out(struct output *output, float *pcm, size_t n, bool final)
{
    if (!effects_feed(output->effects, &pcm, &n, final)) {
        return fail(2, "out of memory");
    }
    if (n == 0) { /* the effects wait for more */
        return 0;
    }
    output->n_samples += n;
    if (output->player) {
        return player_write(output->player, pcm, n)
                   ? 0
                   : fail(2, "the sound device failed (-o FILE writes a file)");
    }
    utter_error error = {0};
    utter_status status = utter_sound_write(output->sound, pcm, n, &error);
    return status ? fail_output(status, &error) : 0;
}

int output_write(struct output *output, const float *pcm, size_t n)
{
    enum { BLOCK = 1920 };
    float block[BLOCK];
    int code = 0;
    for (size_t i = 0; i < n && code == 0; i += BLOCK) {
        size_t part = n - i < BLOCK ? n - i : BLOCK;
        memcpy(block, pcm + i, part * sizeof *block);
        code = write_out(output, block, part, false);
    }
    return code;
}

int output_close(struct output *output, bool play_rest)
{
    int code = output->effects && (output->sound || play_rest) ? write_out(output, NULL, 0, true) : 0;
    if (code) {
        return code;
    }
    player_close(output->player, play_rest);
    output->player = NULL;
    utter_error error = {0};
    utter_status status = utter_sound_close(&output->sound, &error);
    return status ? fail_output(status, &error) : 0;
}

void output_abort(struct output *output)
{
    player_close(output->player, false);
    output->player = NULL;
    utter_sound_abort(&output->sound);
    effects_free(output->effects);
    output->effects = NULL;
}
