/* SPDX-License-Identifier: Apache-2.0
 * The table of fields: one row a field. */
#include "server/speech/field_table.h"

#include <stdint.h>

#include "server/sound/encode.h"

const struct field_row field_table[N_FIELDS] = {
    [FIELD_INPUT] = {"input", FIELD_IS_TEXT, .high = FIELDS_MAX_INPUT, .about = "The text; needed."},
    [FIELD_VOICE] = {"voice", FIELD_IS_VOICE,
        .about = "A preset, an uploaded voice, or one of OpenAI's 13 names; default the first one."},
    [FIELD_SPEAKER] = {"speaker", FIELD_IS_VOICE, .about = "Another name of voice."},
    [FIELD_MODEL] = {"model", FIELD_IS_TEXT,
        .about =
            "The served name, or a name of OpenAI's models that stands for it; another one is 404."},
    [FIELD_RESPONSE_FORMAT] = {"response_format", FIELD_IS_WORD, .words = ENCODE_FORMAT_LIST,
        .about = "Default mp3, or what --default-format says; of a session pcm. pcm: 16 bits, little "
                 "endian, mono."},
    [FIELD_SPEED] = {"speed", FIELD_IS_NUMBER, 0.25, 4, .fallback = "1",
        .about = "Stretched in time; the pitch stays."},
    [FIELD_VOLUME] = {"volume_multiplier", FIELD_IS_NUMBER, 0, 4, .fallback = "1",
        .about = "So many times as loud."},
    [FIELD_SAMPLE_RATE] = {"sample_rate", FIELD_IS_INTEGER, 8000, 48000,
        .about = "Default the model's, 24000. mp3 and aac have nine rates."},
    [FIELD_SAMPLE_FORMAT] = {"sample_format", FIELD_IS_WORD, .words = SAMPLES_LIST,
        .fallback = "\"s16\"", .about = "Of wav and pcm."},
    [FIELD_BIT_RATE] = {"bit_rate", FIELD_IS_INTEGER, 6000, 320000,
        .about = "Bits a second of mp3 and opus; the nearest there is."},
    [FIELD_STREAM_FORMAT] = {"stream_format", FIELD_IS_WORD, .words = "audio|sse",
        .fallback = "\"audio\"",
        .about = "sse: events speech.audio.delta with base64, then speech.audio.done with usage."},
    [FIELD_STREAM] = {"stream", FIELD_IS_FLAG, .fallback = "true",
        .about = "true: sound from the first frame on; false: one whole file with its length."},
    [FIELD_INSTRUCTIONS] = {"instructions", FIELD_IS_TEXT, .high = FIELDS_MAX_INSTRUCTIONS,
        .about = "How to speak; for a voice-design model, the voice."},
    [FIELD_LANGUAGE] = {"language", FIELD_IS_TEXT, .fallback = "\"auto\"",
        .about = "A name of the model, auto, or a code (en, zh-CN)."},
    [FIELD_LANG_CODE] = {"lang_code", FIELD_IS_TEXT, .about = "Another name of language."},
    [FIELD_MARKUP] = {"markup", FIELD_IS_WORD, .words = "none|auto|tags|ssml", .fallback = "\"none\"",
        .about = "What the text holds besides words: utter(1), MARKUP; voices in it are presets."},
    [FIELD_SPELL_OUT] = {"spell_out", FIELD_IS_FLAG, .fallback = "false",
        .about = "Numbers, dates, times, units, money and phone numbers in words."},
    [FIELD_CARRY] = {"carry", FIELD_IS_FLAG, .fallback = "false",
        .about =
            "Each piece of a long text goes on from the one before: voices cloned with a transcript."},
    [FIELD_SEED] = {"seed", FIELD_IS_INTEGER, 0, (double)INT64_MAX, .fallback = "0",
        .about = "The same seed gives the same samples."},
    [FIELD_MAX_NEW_TOKENS] = {"max_new_tokens", FIELD_IS_INTEGER, 1, FIELDS_MAX_FRAMES,
        .about = "Frames of 80 ms, of all pieces together; default no limit."},
    [FIELD_NON_STREAMING_MODE] = {"non_streaming_mode", FIELD_IS_FLAG,
        .about = "true: the whole text stands before the speech; false: it goes in with the frames."},
    [FIELD_TASK_TYPE] = {"task_type", FIELD_IS_WORD, .words = "CustomVoice|VoiceDesign|Base",
        .about = "Must be that of the model."},
    [FIELD_REF_AUDIO] = {"ref_audio", FIELD_IS_TEXT,
        .about = "A recording as a data URL or base64: a voice for this request alone; base models."},
    [FIELD_REF_TEXT] = {"ref_text", FIELD_IS_TEXT, .about = "What that recording says."},
    [FIELD_X_VECTOR_ONLY_MODE] = {"x_vector_only_mode", FIELD_IS_FLAG, .fallback = "false",
        .about = "Of that recording, take the colour of the voice alone."},
    [FIELD_SPLIT_GRANULARITY] = {"split_granularity", FIELD_IS_WORD, .words = "none|sentence|clause",
        .fallback = "\"none\"", .session_only = true,
        .about =
            "none: text goes into the speech as it comes; else it is cut, and each part is a speech."},
    [FIELD_WORD_TIMESTAMPS] = {"word_timestamps", FIELD_IS_FLAG, .fallback = "false",
        .about = "Which word is heard when: events speech.audio.words, with stream false JSON with "
                 "audio_data and words, in a session audio.words."},
    [FIELD_BACKGROUND] = {"background", FIELD_IS_FLAG, .fallback = "false",
        .about =
            "true: nobody waits for it. It is made on lanes that listeners leave idle; when they need "
            "one it ends with 503 and the code given_back, and may be asked for again. Not in "
            "sessions."},
    [FIELD_MODEL_HASH] = {"model_hash", FIELD_IS_TEXT,
        .about = "As utter job knows the model; where another one is served, 409."},
    [FIELD_VOICE_HASH] = {"voice_hash", FIELD_IS_TEXT, .about = "Likewise of the voice."},
    [FIELD_SPEAKER_EMBEDDING] = {.name = "speaker_embedding"},
    [FIELD_REFERENCES] = {.name = "references"},
    [FIELD_INITIAL_CODEC_CHUNK_FRAMES] = {"initial_codec_chunk_frames", FIELD_IS_INTEGER, .low = 1,
        .high = 64},
    [FIELD_STREAM_AUDIO] = {"stream_audio", FIELD_IS_FLAG, .session_only = true},
};
