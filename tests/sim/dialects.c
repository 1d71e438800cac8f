/* SPDX-License-Identifier: Apache-2.0
 * Clients who ask in other ways: dialects of other services, sounds of other formats, batches, uploads, orders. What
 * they hear is looked at by the tests of these; here each must be told, and nothing of it may stay. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/client_parts.h"

#define TEXT "The river in the morning was as quiet as an old garden beside a bridge."
#define FORMAT(name) "{\"input\":\"" TEXT "\",\"voice\":\"clara\",\"response_format\":\"" name "\"}"

static const struct {
    const char *method, *path, *body;
} asked[] = {
    {"POST", "/v1/audio/speech", FORMAT("wav")},
    {"POST", "/v1/audio/speech", FORMAT("flac")},
    {"POST", "/v1/audio/speech", FORMAT("aac")},
    {"POST", "/v1/audio/speech", FORMAT("mp3")},
    {"POST", "/v1/audio/speech", FORMAT("opus")},
    {"POST", "/v1/audio/speech",
        "{\"input\":\"" TEXT "\",\"response_format\":\"pcm\",\"stream_format\":\"sse\","
        "\"word_timestamps\":true,\"speed\":1.2}"},
    {"POST", "/v1/audio/speech",
        "{\"input\":\"" TEXT "\",\"response_format\":\"wav\",\"stream\":false,"
        "\"word_timestamps\":true}"},
    {"POST", "/v1/audio/speech",
        "{\"input\":\"" TEXT "\",\"response_format\":\"pcm\",\"ref_text\":\"a\","
        "\"ref_audio\":\"UklGRi4uLi5XQVZFUklGRi4uLi5XQVZFUklGRi4uLi5XQVZF\"}"},
    {"POST", "/v1/audio/speech/batch",
        "{\"items\":[{\"input\":\"" TEXT "\"},{\"input\":\"b\",\"speed\":9},{\"input\":\"" TEXT "\"}],"
        "\"response_format\":\"wav\"}"},
    {"POST", "/v1/audio/voices",
        "{\"name\":\"me\",\"consent\":\"yes\",\"ref_text\":\"a\",\"audio_sample\":"
        "\"UklGRi4uLi5XQVZF\"}"},
    {"POST", "/v1/audio/voices",
        "--B\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nme\r\n"
        "--B\r\nContent-Disposition: form-data; name=\"consent\"\r\n\r\nyes\r\n"
        "--B\r\nContent-Disposition: form-data; "
        "name=\"audio_sample\"\r\n\r\nRIFF....WAVE\r\n--B--\r\n"},
    {"DELETE", "/v1/audio/voices/me", ""},
    {"POST", "/v1/text-to-speech/clara/stream?output_format=pcm_24000", "{\"text\":\"" TEXT "\"}"},
    {"POST", "/v1/text-to-speech/clara/with-timestamps", "{\"text\":\"" TEXT "\"}"},
    {"POST", "/v1/text-to-speech/clara/stream/with-timestamps", "{\"text\":\"" TEXT "\"}"},
    {"POST", "/tts/bytes",
        "{\"model_id\":\"sonic-3\",\"transcript\":\"" TEXT
        "\",\"voice\":{\"mode\":\"id\",\"id\":\"clara\"},"
        "\"output_format\":{\"container\":\"wav\",\"encoding\":\"pcm_s16le\",\"sample_rate\":24000}}"},
    {"POST", "/tts/sse",
        "{\"model_id\":\"sonic-3\",\"transcript\":\"" TEXT
        "\",\"voice\":{\"mode\":\"id\",\"id\":\"clara\"},"
        "\"output_format\":{\"container\":\"raw\",\"encoding\":\"pcm_s16le\",\"sample_rate\":24000},"
        "\"add_timestamps\":true}"},
    {"POST", "/v1/speak?model=aura-2-clara-en&encoding=linear16", "{\"text\":\"" TEXT "\"}"},
    {"POST", "/v1/workers/0/replace", "{}"},
    {"POST", "/v1/workers/0/start", "{}"},
    {"GET", "/v1/voices", ""},
    {"GET", "/v1/workers", ""},
    {"GET", "/openapi.json", ""},
    {"GET", "/docs", ""},
    {"GET", "/", ""},
};

static const struct {
    const char *path, *messages[6];
} talks[] = {
    {"/v1/text-to-speech/clara/stream-input?output_format=pcm_24000",
        {"{\"text\":\" \",\"voice_settings\":{\"speed\":1.1}}", "{\"text\":\"" TEXT " \"}",
            "{\"text\":\"\"}"}},
    {"/v1/text-to-speech/clara/multi-stream-input?sync_alignment=true",
        {"{\"text\":\" \",\"context_id\":\"a\"}",
            "{\"text\":\"" TEXT " \",\"context_id\":\"a\",\"flush\":true}",
            "{\"text\":\"" TEXT " \",\"context_id\":\"b\"}",
            "{\"context_id\":\"a\",\"close_context\":true}", "{\"close_socket\":true}"}},
    {"/tts/websocket?cartesia_version=2025-04-16",
        {"{\"context_id\":\"c\",\"model_id\":\"sonic-3\",\"transcript\":\"" TEXT
         " \",\"voice\":{\"mode\":\"id\","
         "\"id\":\"clara\"},\"output_format\":{\"container\":\"raw\",\"encoding\":\"pcm_s16le\","
         "\"sample_rate\":24000},"
         "\"continue\":true,\"add_timestamps\":true}",
            "{\"context_id\":\"c\",\"model_id\":\"sonic-3\",\"transcript\":\"" TEXT
            "\",\"voice\":{\"mode\":\"id\","
            "\"id\":\"clara\"},\"output_format\":{\"container\":\"raw\",\"encoding\":\"pcm_s16le\","
            "\"sample_rate\":24000}}",
            "{\"context_id\":\"c\",\"cancel\":true}"}},
    {"/v1/speak?encoding=linear16&sample_rate=24000",
        {"{\"type\":\"Speak\",\"text\":\"" TEXT "\"}", "{\"type\":\"Flush\"}", "{\"type\":\"Clear\"}",
            "{\"type\":\"Speak\",\"text\":\"" TEXT "\"}", "{\"type\":\"Close\"}"}},
    {"/v2/speak?encoding=linear16&sample_rate=24000",
        {"{\"type\":\"Speak\",\"text\":\"" TEXT "\"}", "{\"type\":\"Flush\"}",
            "{\"type\":\"Interrupt\",\"playback_offset\":{\"type\":\"time_ms\",\"value\":1500}}"}},
    {"/v1/audio/speech/stream",
        {"{\"type\":\"session.config\",\"response_format\":\"opus\",\"word_timestamps\":true,\"split_"
         "granularity\":"
         "\"sentence\"}",
            "{\"type\":\"input.text\",\"text\":\"" TEXT " " TEXT "\"}", "{\"type\":\"input.done\"}",
            "{\"type\":\"input.cancel\",\"played_ms\":300}", "{\"type\":\"session.close\"}"}},
};

void dialect_ask(struct client *c)
{
    char request[2000];
    int i = draw_below(sizeof asked / sizeof *asked);
    size_t n = client_head(c, request, sizeof request, asked[i].method, asked[i].path);
    const char *body = asked[i].body,
               *type = *body == '-' ? "multipart/form-data; boundary=B" : "application/json";
    n += (size_t)snprintf(request + n, sizeof request - n,
        "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n%s", type, strlen(body), body);
    answer_begin(&c->answer, ANSWER_ANY, 0);
    client_expects_sound(c, 3 * sizeof TEXT);
    client_send(c, request, n);
}

/* All that it says at once; it listens until it leaves. */
void dialect_talk(struct client *c)
{
    char request[4000];
    int i = draw_below(sizeof talks / sizeof *talks);
    size_t n = client_head(c, request, sizeof request, "GET", talks[i].path);
    n += (size_t)snprintf(request + n, sizeof request - n,
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    for (int k = 0; k < 6 && talks[i].messages[k]; k++) {
        const char *message = talks[i].messages[k];
        size_t bytes = strlen(message);
        n += client_frame(request + n, bytes);
        memcpy(request + n, message, bytes);
        n += bytes;
    }
    client_send(c, request, n);
}
