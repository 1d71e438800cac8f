/* SPDX-License-Identifier: Apache-2.0
 * A sound device for the transcripts of the program: what is played goes to the file that $PLAYED names. Without
 * it there is no device. $PLAYED_END is then how it ended, and $PLAYED_LIFE all that was called; the call that
 * $PLAYED_FAILS names fails. Loaded in front of the system's functions, it interrupts who is about to name a file. */
#include <portaudio.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static FILE *played;

/* Notes the call; false: it fails. */
static bool lives(const char *call)
{
    char life[1024];
    const char *before = getenv("PLAYED_LIFE"), *fails = getenv("PLAYED_FAILS");
    snprintf(life, sizeof life, "%s%s ", before ? before : "", call);
    setenv("PLAYED_LIFE", life, 1);
    return !fails || strcmp(fails, call) != 0;
}

EXPORT int fsync(int fd)
{
    static int n;
    (void)fd;
    return n++ == 0 ? raise(SIGINT) : 0;
}

EXPORT PaError Pa_Initialize(void)
{
    fputs("posed: no other card\n", stderr); /* as sound systems do */
    return lives("initialize") ? paNoError : paNotInitialized;
}

EXPORT PaError Pa_Terminate(void)
{
    return lives("terminate") ? paNoError : paNotInitialized;
}

EXPORT PaDeviceIndex Pa_GetDefaultOutputDevice(void)
{
    return getenv("PLAYED") ? 0 : paNoDevice;
}

EXPORT const PaDeviceInfo *Pa_GetDeviceInfo(PaDeviceIndex device)
{
    static const PaDeviceInfo info = {
        .structVersion = 2, .name = "file", .maxOutputChannels = 1, .defaultHighOutputLatency = 0.25};
    return device == 0 && lives("info") ? &info : NULL;
}

EXPORT PaError Pa_OpenStream(PaStream **stream, const PaStreamParameters *input,
    const PaStreamParameters *output, double rate, unsigned long frames, PaStreamFlags flags,
    PaStreamCallback *callback, void *user)
{
    if (input || callback || user || frames || flags || rate != 24000 || output->device != 0 ||
        output->channelCount != 1 || output->sampleFormat != paFloat32 ||
        output->suggestedLatency != 0.25) {
        return paInvalidFlag;
    }
    if (!lives("open")) {
        return paDeviceUnavailable;
    }
    played = fopen(getenv("PLAYED"), "wb");
    *stream = played;
    return played ? paNoError : paDeviceUnavailable;
}

EXPORT PaError Pa_StartStream(PaStream *stream)
{
    return lives("start") && stream == played ? paNoError : paBadStreamPtr;
}

EXPORT PaError Pa_WriteStream(PaStream *stream, const void *samples, unsigned long n)
{
    const bool written = fwrite(samples, sizeof(float), n, stream) == n && fflush(stream) == 0;
    return !written ? paUnanticipatedHostError : lives("write") ? paNoError : paOutputUnderflowed;
}

EXPORT PaError Pa_StopStream(PaStream *stream)
{
    setenv("PLAYED_END", "all was heard", 1);
    return lives("stop") && stream == played ? paNoError : paBadStreamPtr;
}

EXPORT PaError Pa_AbortStream(PaStream *stream)
{
    setenv("PLAYED_END", "the rest was dropped", 1);
    return lives("abort") && stream == played ? paNoError : paBadStreamPtr;
}

EXPORT PaError Pa_CloseStream(PaStream *stream)
{
    fclose(stream);
    played = NULL;
    return lives("close") ? paNoError : paBadStreamPtr;
}
