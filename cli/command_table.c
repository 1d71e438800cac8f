/* SPDX-License-Identifier: Apache-2.0
 * The commands, as data, in the order of the help. */
#include <limits.h>

#include "cli/options.h"

const struct command command_table[] = {
    {COMMAND_SAY, "say", "speak a text", "[-m DIR] [-v VOICE] [-o FILE] [options] TEXT...",
        "TEXT, of any length, is spoken; several arguments are joined by blanks. -, or none where\n"
        "something is sent, reads standard input as it arrives; with --layout stream, speech starts\n"
        "with its first words. Ctrl-C ends the speech; what was spoken is a complete file, and the\n"
        "exit code is 130; it is 3 where words are missing.\n",
        {"utter say -m models/custom -v ryan -o hello.wav \"Hello there.\"",
            "cat story.txt | utter say -m models/custom --layout stream -o - - | aplay -t raw -f "
            "S16_LE -r 24000"},
        0, INT_MAX, command_say},
    {COMMAND_READ, "read", "read a book out: an audiobook with chapters",
        "[-m DIR] [-v VOICE] [-o FILE] [options] BOOK",
        "BOOK is an epub, txt, md, html, or subtitles (srt, vtt), which are spoken in their slots. "
        "The\n"
        "result is an m4b with chapters and cover where ffmpeg is installed, or what -o names. Ctrl-C\n"
        "leaves a complete file of what was made; the same command goes on from there, also after a\n"
        "crash. The exit code is 3 where words are missing.\n",
        {"utter read book.epub", "utter read book.epub --chapters 2-5 --loudness -18 -o book.mp3"}, 1,
        1, command_read},
    {COMMAND_JOB_SUBMIT, "job submit", "put the lines of a manifest that have no result into a queue",
        "MANIFEST --queue DIR --results DIR [options]",
        "All of the manifest is checked first. Submitting it again puts into the queue what has no "
        "good\n"
        "result, whatever became of the queue or of a submission that was cut; lines that have failed\n"
        "stay so. The options of lines are for those that say nothing themselves, and part of what "
        "names\n"
        "a submission. MANIFEST: utter job --help.\n",
        {"utter job submit lines.jsonl --queue queue --results results",
            "utter job submit lines.jsonl --queue queue --results results -v ryan --format mp3"},
        1, 1, command_job_submit},
    {COMMAND_JOB_WORK, "job work", "speak the lines of a queue",
        "[-m DIR] --queue DIR --results DIR [--until-empty] [options]",
        "Any number of workers may take lines from one queue. The lines of a worker that is killed, or "
        "ended\n"
        "by Ctrl-C or SIGTERM, wait again at once. The exit code is 3 where a line failed or lacks "
        "words.\n",
        {"utter job work --queue queue --results results --until-empty",
            "utter job work --server http://127.0.0.1:8080 --queue queue --results results"},
        0, 0, command_job_work},
    {COMMAND_JOB_STATUS, "job status", "tell how far a queue is, and what results a manifest has",
        "[MANIFEST] [--queue DIR] [--results DIR] [options]",
        "With MANIFEST every result is looked at, by the options that it was submitted with.\n",
        {"utter job status --queue queue", "utter job status lines.jsonl --results results --json"}, 0,
        1, command_job_status},
    {COMMAND_JOB_RETRY, "job retry", "submit again, with the lines that have failed",
        "MANIFEST --queue DIR --results DIR [options]",
        "As utter job submit, and what is told of failures is forgotten. A line that lacks words has "
        "a\n"
        "result, which stays.\n",
        {"utter job retry lines.jsonl --queue queue --results results",
            "utter job retry lines.jsonl --queue queue --results results -v ryan --format mp3"},
        1, 1, command_job_retry},
    {COMMAND_JOB_COLLECT, "job collect", "put the results of a manifest into a folder, under their ids",
        "MANIFEST --results DIR -o DIR [options]",
        "results.jsonl there has a line for each line of the manifest. Give the options that it was "
        "submitted\n"
        "with. A sound there can be the result's own file: change a copy of it. The exit code is 3 "
        "where\n"
        "a line has no result or lacks words.\n",
        {"utter job collect lines.jsonl --results results -o sounds",
            "utter job collect lines.jsonl --results results -o sounds -v ryan --format mp3"},
        1, 1, command_job_collect},
    {COMMAND_JOB, "job", "speak many lines, by any number of workers",
        "submit|work|status|retry|collect ...",
        "A manifest has a line of JSON for each sound:\n"
        "  {\"id\": \"hello\", \"text\": \"Hello there.\"}\n"
        "  {\"id\": \"book/one\", \"file\": \"one.txt\", \"voice\": \"ann\", \"language\": "
        "\"english\", \"seed\": "
        "1,\n"
        "   \"instruct\": \"Calm.\", \"format\": \"mp3\", \"markup\": \"tags\", \"words\": true}   "
        "(one line)\n"
        "id names the sound; text, or file, beside the manifest, is spoken, of any length; words asks "
        "when "
        "each\n"
        "is heard. A result is a sound and a JSON, named by a hash of all that the sound depends on; "
        "manifest\n"
        "and results are the truth, and the queue can be lost. To begin with:\n"
        "  echo '{\"id\": \"hello\", \"text\": \"Hello there.\"}' > lines.jsonl\n"
        "  utter job submit lines.jsonl --queue queue --results results\n"
        "  utter job work --queue queue --results results --until-empty\n"
        "  utter job collect lines.jsonl --results results -o sounds\n"
        "sounds/hello.flac is there then. utter job submit --help and so on tell more.\n",
        {"utter job status --queue queue",
            "utter job retry lines.jsonl --queue queue --results results"},
        0, INT_MAX, command_job},
    {COMMAND_CLONE, "clone", "make a voice from a recording",
        "[-m DIR] SOUND [--text TRANSCRIPT] -o NAME.voice [options]",
        "SOUND is wav, flac, ogg, opus or mp3; 5 to 15 seconds of clean speech are best. With --text\n"
        "the voice holds the recording itself and sounds more like it; the transcript must say what\n"
        "the recording says, word for word. Takes a base model. --json prints frames, codes, "
        "x-vector.\n",
        {"utter clone -m models/base me.wav --text \"What I said.\" -o me.voice",
            "utter clone -m models/base me.mp3 -o me.voice"},
        1, 1, command_clone},
    {COMMAND_DESIGN, "design", "make a voice from a description, and keep it",
        "-m VOICEDESIGN --for BASE --instruct TEXT -o NAME.voice [options]",
        "The voice-design model speaks a reference, which the base model clones; from then on the\n"
        "base model speaks with the voice. Another seed gives another voice of this description.\n",
        {"utter design -m models/design --for models/base --instruct \"A calm old man.\" -o old.voice",
            "utter design -m models/design --for models/base --instruct \"Hell, jung.\" -l german -o "
            "jung.voice"},
        0, 0, command_design},
    {COMMAND_VOICES_MIX, "voices mix", "mix cloned voices by weight",
        "VOICE[:WEIGHT]... -o NAME.voice [options]",
        "The x-vectors are mixed; codes cannot be, so a mixture is like clones without transcript.\n",
        {"utter voices mix ann.voice:0.7 bob.voice:0.3 -o both.voice",
            "utter voices mix ann bob -o both.voice"},
        1, 256, command_voices_mix},
    {COMMAND_VOICES, "voices", "list voices and languages, or tell what a voice file holds",
        "[-m DIR] [VOICE] [options]",
        "Lists the preset voices of the model and the voice files on the search path. With VOICE, a\n"
        "file or its name, tells what is in it, and with -m whether it fits the model.\n",
        {"utter voices -m models/custom", "utter voices -m models/base me.voice --json"}, 0, 1,
        command_voices},
    {COMMAND_INFO, "info", "tell what a model is, and what it takes in memory", "[-m DIR] [options]",
        "", {"utter info -m models/custom", "utter info -m models/custom --json"}, 0, 0, command_info},
    {COMMAND_MODELS, "models", "list the models that are here, and those that can be had", "[options]",
        "-m takes any of these names, short or whole, besides folders and files.\n",
        {"utter models", "utter models --json"}, 0, 0, command_models},
    {COMMAND_PULL, "pull", "download a model from the hub", "NAME [options]",
        "NAME is short (utter models lists them) or a repository, OWNER/NAME. The files go where the "
        "hub's\n"
        "own client has them, and both share them. What was interrupted goes on; sizes and hashes are\n"
        "checked. HF_ENDPOINT names a mirror, HF_TOKEN who asks, HF_HUB_CACHE the folder.\n",
        {"utter pull 0.6b", "utter pull Qwen/Qwen3-TTS-12Hz-1.7B-Base"}, 1, 1, command_pull},
    {COMMAND_USE, "use", "choose the model, voice and device that commands take by themselves",
        "[MODEL] [options]",
        "The choice is kept in utter/config under $XDG_CONFIG_HOME or ~/.config, and what is not "
        "named\n"
        "again is dropped; MODEL builtin is the voice that comes with the program. UTTER_MODEL,\n"
        "UTTER_VOICE and UTTER_DEVICE come before it, options before those. Without anything, tells\n"
        "what is chosen, and by which of them.\n",
        {"utter use 0.6b -v ryan", "utter use builtin"}, 0, 1, command_use},
    {COMMAND_COMPLETION, "completion", "print the script that completes commands in a shell",
        "bash|zsh|fish", "",
        {"eval \"$(utter completion bash)\"",
            "utter completion fish > ~/.config/fish/completions/utter.fish"},
        1, 1, command_completion},
    {COMMAND_TOKENS, "tokens", "show the token ids of a text", "[-m DIR] [options] TEXT...",
        "The ids come on one line. - reads the text from standard input, every byte of it.\n",
        {"utter tokens -m models/custom \"Hello there.\"",
            "utter tokens -m models/custom --pretokenizer native --json -f story.txt"},
        0, INT_MAX, command_tokens},
    {COMMAND_CODEC_DECODE, "codec decode", "turn codes into sound",
        "[-m DIR] CODES.json -o FILE [options]",
        "CODES.json is what utter say --codes writes; - is standard input.\n",
        {"utter codec decode -m models/custom codes.json -o again.wav",
            "utter codec decode -m models/custom --rule official codes.json -o official.wav"},
        1, 1, command_codec_decode},
    {COMMAND_CODEC_ENCODE, "codec encode", "turn a recording into codes",
        "[-m DIR] SOUND [-o CODES.json] [options]",
        "SOUND is wav, flac, ogg, opus or mp3. utter codec decode turns the codes into sound again.\n",
        {"utter codec encode -m models/base me.wav -o codes.json",
            "utter codec encode -m models/base me.wav | utter codec decode -m models/base - -o "
            "again.wav"},
        1, 1, command_codec_encode},
    {COMMAND_VERIFY, "verify", "compare a model with a golden file, stage by stage",
        "[-m DIR] GOLDEN.safetensors [options]",
        "The golden file comes from the official package (docs/verify.md). The exit code is 1 when\n"
        "a stage does not agree.\n",
        {"utter verify -m models/custom golden.safetensors",
            "utter verify -m models/custom --json golden.safetensors"},
        1, 1, command_verify},
    {COMMAND_QUANTIZE, "quantize", "pack a model into one file of 8 or 4 bits",
        "[-m DIR] --weights q8|q4 -o FILE",
        "The file holds everything (weights, codec, configs, vocabulary) under a hash, and every "
        "command takes\n"
        "it as -m FILE. What each frame reads is packed, the vocoder's matrices take 16 bits, "
        "the rest stays as it is.\n",
        {"utter quantize -m models/custom --weights q8 -o custom-q8.safetensors",
            "utter say -m custom-q8.safetensors \"Hello there.\""},
        0, 0, command_quantize},
    {COMMAND_ALIGN_HEADS, "align-heads", "find out which heads of a model follow the text, for --times",
        "[-m DIR] [-v VOICE] [options] [TEXT...]",
        "The model speaks TEXT, or sentences of the program's own, while all heads of its talker are\n"
        "watched. Those that follow the text are kept in utter under $XDG_CACHE_HOME or ~/.cache, and\n"
        "words of this model are timed by them from then on. Without it the first speeches whose "
        "words\n"
        "are asked for do the same. The exit code is 1 where no head does: times stay approximate.\n",
        {"utter align-heads -m models/custom",
            "utter align-heads -m models/custom -o models/custom/alignment_heads.json"},
        0, INT_MAX, command_align_heads},
    {COMMAND_BENCH, "bench", "measure the speed of a model on this machine", "[-m DIR] [options]",
        "One row for each length and number of lanes, in ms: ttfc, from the text to the first "
        "samples;\n"
        "frame, one step of all lanes; talker, predictor and vocoder, their parts of it; prefill; "
        "wall.\n"
        "rtf is wall over the seconds of speech of all lanes. GB/s, the weights that a frame reads "
        "over\n"
        "its time, stands against what this machine can read. The guard is off, and every run has the "
        "same seed.\n",
        {"utter bench -m models/custom",
            "utter bench -m models/custom --words 13 --lanes 1,2,4 --json"},
        0, 0, command_bench},
    {COMMAND_SERVE, "serve", "speak over HTTP and WebSocket, for many at once", "[-m DIR] [options]",
        "Speaks the interface of OpenAI (POST /v1/audio/speech), with sound from the first frame on, "
        "and\n"
        "WebSocket /v1/audio/speech/stream for text that is still being written. A page for people is "
        "at /.\n"
        "One line on standard output says when it is ready. /docs tells the interface.\n"
        "What is not typed comes from the environment (UTTER_SERVE_PORT=8000, "
        "UTTER_SERVE_API_KEY_FILE=keys), "
        "then\n"
        "from the lines of a file: port = 8000, insecure = no (--config).\n",
        {"utter serve", "utter serve -m models/custom --host 0.0.0.0 --api-key-file keys --lanes 64"},
        0, 0, command_serve},
    {COMMAND_MCP, "mcp", "give assistants a voice: tools of the Model Context Protocol",
        "[-m DIR] [options]",
        "An assistant starts it and talks to it on standard input and output. Its tools: speak gives "
        "back\n"
        "sound, plays it, or writes a new file; list_voices. Revisions up to 2025-11-25, and "
        "2026-07-28.\n",
        {"utter mcp", "utter mcp -m models/custom -v ryan"}, 0, 0, command_mcp},
    {COMMAND_LOAD, "load", "ask a server for much speech, and tell what listeners heard", "[options]",
        "Texts are asked for as PCM, as OpenAI's interface has it. First sound: its first byte. "
        "Audible: the\n"
        "first sample above -50 dB, as a player would play it. Underrun: a player that starts with the "
        "first\n"
        "byte had nothing left.\n",
        {"utter load --rate 5 --seconds 30", "utter load --listeners 20 --json"}, 0, 0, command_load},
};

const size_t n_commands = sizeof command_table / sizeof *command_table;
