/* SPDX-License-Identifier: Apache-2.0
 * A sound device for the transcripts of the program: what is played goes to the file that $PLAYED names. Without
 * it there is no device. $PLAYED_END is then how it ended. Loaded in front of the system's functions, it interrupts who
 * is about to name a file. */
#include <portaudio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static FILE *played;

EXPORT int fsync(int fd)
{
    static int n;
    (void)fd;
    return n++ == 0 ? raise(SIGINT) : 0;
}

EXPORT PaError Pa_Initialize(void)
{
    return paNoError;
}

EXPORT PaError Pa_Terminate(void)
{
    return paNoError;
}

EXPORT PaDeviceIndex Pa_GetDefaultOutputDevice(void)
{
    return getenv("PLAYED") ? 0 : paNoDevice;
}

EXPORT const PaDeviceInfo *Pa_GetDeviceInfo(PaDeviceIndex device)
{
    static const PaDeviceInfo info = {.structVersion = 2, .name = "file", .maxOutputChannels = 1};
    return device == 0 ? &info : NULL;
}

EXPORT PaError Pa_OpenStream(PaStream **stream, const PaStreamParameters *input,
    const PaStreamParameters *output, double rate, unsigned long frames, PaStreamFlags flags,
    PaStreamCallback *callback, void *user)
{
    (void)frames;
    (void)flags;
    (void)user;
    if (input || callback || rate != 24000 || output->channelCount != 1 ||
        output->sampleFormat != paFloat32) {
        return paInvalidFlag;
    }
    played = fopen(getenv("PLAYED"), "wb");
    *stream = played;
    return played ? paNoError : paDeviceUnavailable;
}

EXPORT PaError Pa_StartStream(PaStream *stream)
{
    return stream == played ? paNoError : paBadStreamPtr;
}

EXPORT PaError Pa_WriteStream(PaStream *stream, const void *samples, unsigned long n)
{
    return fwrite(samples, sizeof(float), n, stream) == n && fflush(stream) == 0
               ? paNoError
               : paUnanticipatedHostError;
}

EXPORT PaError Pa_StopStream(PaStream *stream)
{
    setenv("PLAYED_END", "all was heard", 1);
    return stream == played ? paNoError : paBadStreamPtr;
}

EXPORT PaError Pa_AbortStream(PaStream *stream)
{
    setenv("PLAYED_END", "the rest was dropped", 1);
    return stream == played ? paNoError : paBadStreamPtr;
}

EXPORT PaError Pa_CloseStream(PaStream *stream)
{
    fclose(stream);
    played = NULL;
    return paNoError;
}
