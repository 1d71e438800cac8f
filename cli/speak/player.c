/* SPDX-License-Identifier: Apache-2.0
 * PortAudio through dlopen, with blocking writes. */
#include "cli/speak/player.h"

#include <dlfcn.h>
#include <portaudio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"

struct player {
    void *library;
    PaStream *stream;
    bool ready; /* PortAudio is initialised */
    __typeof__(&Pa_Initialize) initialize;
    __typeof__(&Pa_Terminate) terminate;
    __typeof__(&Pa_GetDefaultOutputDevice) default_device;
    __typeof__(&Pa_GetDeviceInfo) device_info;
    __typeof__(&Pa_OpenStream) open_stream;
    __typeof__(&Pa_StartStream) start_stream;
    __typeof__(&Pa_WriteStream) write_stream;
    __typeof__(&Pa_StopStream) stop_stream;
    __typeof__(&Pa_AbortStream) abort_stream;
    __typeof__(&Pa_CloseStream) close_stream;
};

static bool player_load(struct player *player)
{
    player->library = dlopen("libportaudio.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!player->library) {
        return false;
    }
    const struct {
        const char *name;
        void *place;
    } calls[] = {
        {"Pa_Initialize", &player->initialize},
        {"Pa_Terminate", &player->terminate},
        {"Pa_GetDefaultOutputDevice", &player->default_device},
        {"Pa_GetDeviceInfo", &player->device_info},
        {"Pa_OpenStream", &player->open_stream},
        {"Pa_StartStream", &player->start_stream},
        {"Pa_WriteStream", &player->write_stream},
        {"Pa_StopStream", &player->stop_stream},
        {"Pa_AbortStream", &player->abort_stream},
        {"Pa_CloseStream", &player->close_stream},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *call = dlsym(player->library, calls[i].name);
        if (!call) {
            return false;
        }
        memcpy(calls[i].place, &call, sizeof call);
    }
    return true;
}

static bool player_start(struct player *player, int sample_rate)
{
    if (player->initialize() != paNoError) {
        return false;
    }
    player->ready = true;
    PaDeviceIndex device = player->default_device();
    const PaDeviceInfo *info = device == paNoDevice ? NULL : player->device_info(device);
    if (!info) {
        return false;
    }
    PaStreamParameters output = {.device = device,
        .channelCount = 1,
        .sampleFormat = paFloat32,
        .suggestedLatency = info->defaultHighOutputLatency};
    return player->open_stream(&player->stream, NULL, &output, sample_rate,
               paFramesPerBufferUnspecified, paNoFlag, NULL, NULL) == paNoError &&
           player->start_stream(player->stream) == paNoError;
}

struct player *player_open(int sample_rate)
{
    struct player *player = calloc(1, sizeof *player);
    if (!player) {
        return NULL;
    }
    report_alone(); /* the sound system prints pages where it finds no card */
    bool started = player_load(player) && player_start(player, sample_rate);
    report_with_others();
    if (!started) {
        player_close(player, false);
        return NULL;
    }
    return player;
}

bool player_write(struct player *player, const float *pcm, size_t n)
{
    /* A gap in the sound is no failure: the samples came late. */
    PaError code = player->write_stream(player->stream, pcm, n);
    return code == paNoError || code == paOutputUnderflowed;
}

void player_close(struct player *player, bool play_rest)
{
    if (!player) {
        return;
    }
    if (player->stream) {
        (play_rest ? player->stop_stream : player->abort_stream)(player->stream);
        player->close_stream(player->stream);
    }
    if (player->ready) {
        player->terminate();
    }
    if (player->library) {
        dlclose(player->library);
    }
    free(player);
}
