/* SPDX-License-Identifier: Apache-2.0
 * All options of all commands, as data, in the order of the help. */
#include <float.h>

#include "cli/options.h"

#define AT(field) offsetof(struct settings, field)
#define SERVES(member) AT(plain.serve.member)
#define LOADS(member) AT(plain.load.member)

enum {
    SAY = COMMAND_SAY,
    READ = COMMAND_READ,
    TOKENS = COMMAND_TOKENS,
    DECODE = COMMAND_CODEC_DECODE,
    VOICES = COMMAND_VOICES,
    INFO = COMMAND_INFO,
    VERIFY = COMMAND_VERIFY,
    BENCH = COMMAND_BENCH,
    SERVE = COMMAND_SERVE,
    MCP = COMMAND_MCP,
    LOAD = COMMAND_LOAD,
    ENCODE = COMMAND_CODEC_ENCODE,
    CLONE = COMMAND_CLONE,
    DESIGN = COMMAND_DESIGN,
    MIX = COMMAND_VOICES_MIX,
    QUANTIZE = COMMAND_QUANTIZE,
    MODELS = COMMAND_MODELS,
    PULL = COMMAND_PULL,
    USE = COMMAND_USE,
    ALIGN = COMMAND_ALIGN_HEADS,
    SUBMIT = COMMAND_JOB_SUBMIT,
    WORK = COMMAND_JOB_WORK,
    STATUS = COMMAND_JOB_STATUS,
    RETRY = COMMAND_JOB_RETRY,
    COLLECT = COMMAND_JOB_COLLECT,
    LINES = SUBMIT | STATUS | RETRY | COLLECT, /* that read a manifest */
    ALL = COMMAND_ALL,
};

/* One row is one option. */
static const struct option option_table[] = {
    {SUBMIT | WORK | STATUS | RETRY, "Job", 0, "queue", "DIR|URL", OPTION_TEXT, 0, 0, AT(queue), NULL,
        "where lines wait: a folder, for the processes of one machine, or nats://HOST[:PORT][/NAME], a "
        "NATS server with JetStream, for those of several"},
    {LINES | WORK, "Job", 0, "results", "DIR|URL", OPTION_TEXT, 0, 0, AT(results), NULL,
        "where the results are kept: a folder, or s3://BUCKET[/PREFIX], a store that speaks S3 "
        "(AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION)"},
    {COLLECT, "Job", 'o', "output", "DIR", OPTION_TEXT, 0, 0, AT(output), NULL,
        "the folder to put each line's sound into, as ID.FORMAT, and results.jsonl"},
    {WORK, "Job", 0, "until-empty", NULL, OPTION_FLAG, 0, 0, AT(until_empty), NULL,
        "end when no line waits and none is being made (default: wait for more)"},
    {WORK, "Job", 0, "tries", "N", OPTION_INTEGER, 1, 100, AT(tries), "3",
        "a line that could not be made so often has failed, and its result says why"},
    {WORK, "Job", 0, "server", "URL", OPTION_TEXT, 0, 0, AT(server), NULL,
        "let a running utter serve speak, on lanes that its listeners leave idle: http://HOST[:PORT]; "
        "no "
        "model is opened here"},
    {WORK, "Job", 0, "key", "KEY", OPTION_TEXT, 0, 0, AT(key), NULL,
        "an API key of that server (UTTER_API_KEY)"},
    {LINES, "Job", 0, "quick", NULL, OPTION_FLAG, 0, 0, AT(quick), NULL,
        "believe a result whose sound has the right length, and do not read it"},
    {LINES, "Job", 0, "format", "wav|flac|ogg|opus|mp3|raw", OPTION_CHOICE, 0, 0, AT(format), NULL,
        "kind of file of lines that name none (default flac)"},
    {(ALL | QUANTIZE | LINES) & ~MIX, "Model", 'm', "model", "DIR", OPTION_TEXT, 0, 0, AT(model), NULL,
        "a name of utter models, a checkpoint folder in the official layout, or a file of utter "
        "quantize "
        "(default: what utter use has chosen, else the voice that comes with the program)"},
    {DESIGN, "Model", 0, "for", "DIR", OPTION_TEXT, 0, 0, AT(base), NULL,
        "the base model that will speak with the voice"},
    {TOKENS, "Model", 0, "pretokenizer", "official|native", OPTION_CHOICE, 0, 0, AT(pretokenizer),
        "official",
        "how text is cut before the merges: as the official package does, or as the language models "
        "do"},

    {SAY | READ | BENCH | USE | MCP | ALIGN | LINES, "Speech", 'v', "voice", "VOICE", OPTION_TEXT, 0, 0,
        AT(voice), NULL, "a voice of the model, a voice file, or its name (utter voices lists them)"},
    {SAY | READ | BENCH | VOICES | MIX | MCP | ALIGN | LINES | WORK, "Speech", 0, "voices",
        "DIR|s3://...", OPTION_TEXT, 0, 0, AT(voices), NULL,
        "look for voice files here first (then in utter/voices under $XDG_DATA_HOME or "
        "~/.local/share); of s3://BUCKET/PREFIX a copy is kept in utter under $XDG_CACHE_HOME or "
        "~/.cache"},
    {SAY | READ | BENCH | CLONE | DESIGN | MCP | ALIGN | LINES, "Speech", 'l', "language", "NAME",
        OPTION_TEXT, 0, 0, AT(language), "auto",
        "the language of the text: a name (english), a code (en, pt-BR), or auto"},
    {SAY | READ | DESIGN | MCP | ALIGN | LINES, "Speech", 0, "instruct", "TEXT", OPTION_TEXT, 0, 0,
        AT(instruct), NULL, "how to speak; for a voice-design model, the voice in words"},
    {CLONE | DESIGN, "Speech", 0, "text", "TEXT", OPTION_TEXT, 0, 0, AT(text), NULL,
        "what the recording says, word for word (design: what it will say; default two sentences)"},
    {CLONE, "Speech", 0, "from", "TIME", OPTION_TEXT, 0, 0, AT(from), NULL,
        "the part of a long recording that is listened to begins here: 3s, 3.5 or 1:05"},
    {CLONE, "Speech", 0, "to", "TIME", OPTION_TEXT, 0, 0, AT(to), NULL, "... and ends here"},
    {CLONE | DESIGN | MIX, "Speech", 0, "name", "NAME", OPTION_TEXT, 0, 0, AT(name), NULL,
        "the name in the voice file (default: NAME of -o NAME.voice)"},
    {SAY | TOKENS, "Speech", 'f', "file", "FILE", OPTION_TEXT, 0, 0, AT(file), NULL,
        "take the text from a file, - is standard input"},
    {READ, "Book", 0, "list", NULL, OPTION_FLAG, 0, 0, AT(list), NULL,
        "show the chapters and speak nothing; with --json also their text"},
    {READ, "Book", 0, "chapters", "N[-N][,..]", OPTION_TEXT, 0, 0, AT(chapters), NULL,
        "only these chapters, by their numbers: 2-5, 3-, 1,4-6"},
    {READ, "Book", 0, "fit", "X", OPTION_NUMBER, 1, 4, AT(fit), "1.5",
        "subtitles may be spoken so many times as fast to fit their slots"},
    {READ, "Book", 0, "fresh", NULL, OPTION_FLAG, 0, 0, AT(fresh), NULL,
        "begin anew, and drop what an earlier run has left"},
    {SAY, "Speech", 0, "lines", NULL, OPTION_FLAG, 0, 0, AT(lines), NULL,
        "a file for each line of the text: -o hello.wav makes hello-0001.wav, hello-0002.wav, ..."},
    {SAY | READ | LINES, "Text", 0, "markup", "none|auto|tags|ssml", OPTION_CHOICE, 0, 0, AT(markup),
        "none",
        "what the text holds besides words: tags like [pause:500ms] and [voice:NAME], SSML, or what it "
        "begins like (utter(1), MARKUP)"},
    {SAY | READ, "Text", 0, "cast", "FILE", OPTION_TEXT, 0, 0, AT(cast), NULL,
        "who speaks the lines \"NAME: ...\": a line NAME = VOICE for each"},
    {SAY | READ, "Text", 0, "lexicon", "FILE", OPTION_TEXT, 0, 0, AT(lexicon), NULL,
        "how words are spelled to be said right: a line WORD = RESPELLING for each"},
    {SAY | READ, "Text", 0, "spell-out", NULL, OPTION_FLAG, 0, 0, AT(spell_out), NULL,
        "write numbers, dates, times, units, money and phone numbers in words before they are spoken"},
    {SAY | READ, "Speech", 0, "carry", NULL, OPTION_FLAG, 0, 0, AT(carry), NULL,
        "each piece of a long text goes on from the one before; for voices cloned with a transcript"},
    {SAY, "Text", 0, "print-text", NULL, OPTION_FLAG, 0, 0, AT(print_text), NULL,
        "write the text as it would be spoken on standard output, and speak nothing"},
    {SAY | READ | ALIGN, "Speech", 0, "layout", "auto|full|stream", OPTION_CHOICE, 0, 0, AT(layout),
        "auto",
        "full: the whole text stands before the speech; stream: it goes in while the model speaks; "
        "auto: as the official package does for this kind of voice"},

    {SAY | DECODE, "Output", 'o', "output", "FILE", OPTION_TEXT, 0, 0, AT(output), NULL,
        "the sound file, - is standard output; without it plays, or where nothing can play replaces "
        "utter.wav"},
    {QUANTIZE, "Output", 'o', "output", "FILE", OPTION_TEXT, 0, 0, AT(output), NULL,
        "the file to write"},
    {ALIGN, "Output", 'o', "output", "FILE", OPTION_TEXT, 0, 0, AT(output), NULL,
        "the file to write instead; as alignment_heads.json it belongs to the checkpoint's folder"},
    {CLONE | DESIGN | MIX, "Output", 'o', "output", "FILE", OPTION_TEXT, 0, 0, AT(output), NULL,
        "the voice file, NAME.voice"},
    {ENCODE, "Output", 'o', "output", "FILE", OPTION_TEXT, 0, 0, AT(output), NULL,
        "the codes as JSON (default - is standard output)"},
    {SAY | DECODE, "Output", 0, "format", "wav|raw|flac|ogg|opus|mp3", OPTION_CHOICE, 0, 0, AT(format),
        NULL, "kind of file (default by its name; raw on standard output)"},
    {READ, "Output", 'o', "output", "FILE", OPTION_TEXT, 0, 0, AT(output), NULL,
        "the sound file (default BOOK.m4b, of subtitles BOOK.wav, in this folder)"},
    {READ, "Output", 0, "format", "m4b|wav|flac|ogg|opus|mp3", OPTION_CHOICE, 0, 0, AT(format), NULL,
        "kind of file (default by its name)"},
    {READ, "Output", 0, "split", NULL, OPTION_FLAG, 0, 0, AT(split), NULL,
        "a file for each chapter: -o book.mp3 makes book-0001.mp3, book-0002.mp3, ..."},
    {READ, "Output", 0, "loudness", "LUFS", OPTION_NUMBER, -40, -8, AT(loudness), NULL,
        "make each chapter so loud (EBU R 128): -18 for audiobooks, -23 for broadcast"},
    {SAY | DECODE, "Output", 0, "sample", "s16|f32", OPTION_CHOICE, 0, 0, AT(sample), "s16",
        "kind of samples in wav and raw: 16-bit integers, or 32-bit floats"},
    {SAY | READ | DECODE, "Output", 0, "speed", "X", OPTION_NUMBER, 0.25, 4, AT(speed), "1",
        "so many times as fast, at the same pitch"},
    {SAY | READ | DECODE, "Output", 0, "volume", "X", OPTION_NUMBER, 0, 4, AT(volume), "1",
        "so many times as loud; 1 is as the model speaks"},
    {SAY | READ | DECODE, "Output", 0, "rate", "HZ", OPTION_INTEGER, 8000, 48000, AT(rate), NULL,
        "samples a second (default: the model's)"},
    {SAY, "Output", 0, "codes", "FILE", OPTION_TEXT, 0, 0, AT(codes), NULL,
        "also write the codes of the speech as JSON, - is standard output"},
    {SAY, "Output", 0, "times", "FILE", OPTION_TEXT, 0, 0, AT(times), NULL,
        "also write when each word is heard: .json, or subtitles by name: .srt, .vtt, .ass"},

    {SAY | READ, "Sampling", 0, "greedy", NULL, OPTION_FLAG, 0, 0, AT(greedy), NULL,
        "always the likeliest code, in both models"},
    {SAY | READ | BENCH | DESIGN | MCP | ALIGN | LINES, "Sampling", 0, "seed", "N", OPTION_INTEGER, 0,
        18446744073709551615.0, AT(seed), "0", "the same seed gives the same samples"},
    {SAY | READ | MCP, "Sampling", .kind = OPTION_PARAMETERS},

    {ALIGN, "Length", 0, "max-frames", "N", OPTION_INTEGER, 1, 1000000, AT(max_frames), NULL,
        "at most N frames of each text (default: from the checkpoint)"},
    {SAY, "Length", 0, "max-frames", "N", OPTION_INTEGER, 1, 1000000, AT(max_frames), NULL,
        "at most N frames of 80 ms in all (default: none; of a piece, from the checkpoint)"},
    {SAY | READ, "Length", 0, "retries", "N", OPTION_INTEGER, 0, 100, AT(retries), "2",
        "say what lacks words again, with the next seed, so often"},
    {SAY | READ, "Length", 0, "no-guard", NULL, OPTION_FLAG, 0, 0, AT(no_guard), NULL,
        "do not end speech that is stuck, silent without end, or far too long for its text"},

    {DECODE, "Decoding", 0, "rule", "whole|official", OPTION_CHOICE, 0, 0, AT(rule), "whole",
        "whole: one stream without seams; official: the official package's chunks of 300 frames"},
    {DECODE, "Decoding", 0, "chunk", "N", OPTION_INTEGER, 1, 32, AT(chunk), NULL,
        "frames decoded in one call; the samples stay the same (default: the program's choice)"},

    {BENCH, "Measurement", 0, "words", "N[,N...]", OPTION_TEXT, 0, 0, AT(words), "13,53,115",
        "lengths of the texts, 1 to 1000 words"},
    {BENCH, "Measurement", 0, "lanes", "N[,N...]", OPTION_TEXT, 0, 0, AT(lanes), "1",
        "streams that speak at the same time, 1 to 256"},
    {BENCH, "Measurement", 0, "runs", "N", OPTION_INTEGER, 1, 100000, AT(runs), "10",
        "measured runs of each row, after 3 that warm up"},
    {BENCH, "Measurement", 0, "max-frames", "N", OPTION_INTEGER, 1, 1000000, AT(max_frames), NULL,
        "at most N frames a stream (default 5 a word, which is ordinary speech)"},
    {BENCH, "Measurement", 0, "as", "CARD", OPTION_TEXT, 0, 0, AT(as), NULL, NULL},

    {WORK, "Machine", 0, "lanes", "N", OPTION_INTEGER, 1, 256, AT(reading_lanes), NULL,
        "lines that are made at the same time (default: as many as suit the device; of a server 16)"},
    {SAY | READ, "Machine", 0, "lanes", "N", OPTION_INTEGER, 1, 256, AT(reading_lanes), NULL,
        "parts of a text that are made at the same time where nobody listens; the samples do not "
        "depend "
        "on it (default: as many as suit the device)"},

    {LOAD, "Server", 0, "host", "ADDRESS", OPTION_TEXT, 0, 0, LOADS(host), "127.0.0.1",
        "where it listens"},
    {LOAD, "Server", 0, "port", "N", OPTION_INTEGER, 1, 65535, LOADS(port), "8080", "and its port"},
    {LOAD, "Server", 0, "key", "KEY", OPTION_TEXT, 0, 0, LOADS(key), NULL, "an API key"},
    {LOAD, "Load", 0, "rate", "X", OPTION_NUMBER, DBL_MIN, 100000, LOADS(rate), NULL,
        "requests a second, at random times that wait for no answer"},
    {LOAD, "Load", 0, "listeners", "N", OPTION_INTEGER, 1, 10000, LOADS(listeners), NULL,
        "instead: so many listeners, each asks again when it has heard the last answer out (default "
        "8)"},
    {LOAD, "Load", 0, "eager", NULL, OPTION_FLAG, 0, 0, LOADS(eager), NULL,
        "listeners ask again as soon as they have the answer"},
    {LOAD, "Load", 0, "seconds", "X", OPTION_NUMBER, DBL_MIN, 86400, LOADS(seconds), "20",
        "how long requests are sent"},
    {LOAD, "Load", 0, "words", "N[-N]", OPTION_TEXT, 0, 0, AT(load_words), "5-60", "words of a text"},
    {LOAD, "Load", 0, "word-frames", "N", OPTION_INTEGER, 1, 100, LOADS(word_frames), NULL,
        "ask for at most N frames of 80 ms a word, where a model does not end by itself"},
    {LOAD, "Load", 'v', "voice", "NAME", OPTION_TEXT, 0, 0, AT(voice), NULL, "who speaks"},
    {LOAD, "Load", 0, "seed", "N", OPTION_INTEGER, 0, 18446744073709551615.0, AT(seed), "0",
        "the same seed sends the same texts at the same times"},
    {LOAD, "Load", 0, "limit", "MS", OPTION_NUMBER, 0, 1e6, LOADS(limit_ms), "300",
        "goodput counts answers that are audible within MS and never run dry"},

    {SERVE, "Server", 0, "config", "FILE", OPTION_TEXT, 0, 0, AT(config), NULL,
        "lines OPTION = VALUE for what is not typed (default: utter/serve.conf under $XDG_CONFIG_HOME "
        "or "
        "~/.config, else /etc/utter/serve.conf); UTTER_SERVE_PORT and the like come before it"},
    {SERVE, "Server", 0, "host", "ADDRESS", OPTION_TEXT, 0, 0, SERVES(host), "127.0.0.1",
        "where to listen; other machines reach it only with --api-key-file or --insecure"},
    {SERVE, "Server", 0, "port", "N", OPTION_INTEGER, 0, 65535, SERVES(port), "8080",
        "0 takes a free one, which the line at the start names"},
    {SERVE, "Server", 0, "lanes", "N", OPTION_INTEGER, 1, 256, SERVES(lanes), NULL,
        "speeches that are made at the same time; not given: as many as suit the device (24 on a CPU), "
        "and no more than can be made as they are heard"},
    {SERVE, "Server", 0, "background", "idle|shared", OPTION_CHOICE, 0, 0, SERVES(background), NULL,
        "who makes on processors what nobody waits for: a worker of its own, which has them when no "
        "other "
        "process wants them, or lanes that listeners leave idle, as on GPUs; not given: idle, but "
        "shared "
        "where a quota of processor time (a container's) would be spent by both"},
    {SERVE, "Server", 0, "queue", "N", OPTION_INTEGER, 0, 10000, SERVES(queue), "64",
        "speeches that may wait for a lane; more are refused"},
    {SERVE, "Server", 0, "patience", "MS", OPTION_INTEGER, 0, 600000, SERVES(patience_ms), "300",
        "who could not be heard so soon, because others speak, is refused at once and told when to "
        "come again"},
    {SERVE, "Server", 0, "voices", "DIR|s3://...", OPTION_TEXT, 0, 0, SERVES(voices), NULL,
        "folder of voice files; uploaded voices are kept there. Or s3://BUCKET/PREFIX, which servers "
        "share: "
        "what is there is copied to utter under $XDG_CACHE_HOME or ~/.cache"},
    {SERVE, "Server", 0, "api-key-file", "FILE", OPTION_TEXT, 0, 0, SERVES(key_file), NULL,
        "ask clients for one of the keys in it, one KEY or sha256:HEX a line, with limits if you like "
        "(speeches=N per-minute=N); SIGHUP reads it again"},
    {SERVE, "Server", 0, "voice-map", "FILE", OPTION_TEXT, 0, 0, SERVES(voice_map), NULL,
        "whose voice clients of other services mean: {\"elevenlabs\": {\"THEIR ID\": \"OUR NAME\", "
        "\"*\": "
        "\"ALL OTHERS\"}}; SIGHUP reads it again"},
    {SERVE, "Server", 0, "wyoming", "tcp://HOST:PORT", OPTION_TEXT, 0, 0, SERVES(wyoming), NULL,
        "speak Wyoming there as well, for Home Assistant (tcp://127.0.0.1:10200); it has no keys, "
        "other machines reach it only with --insecure"},
    {SERVE, "Server", 0, "default-format", ENCODE_FORMAT_LIST, OPTION_CHOICE, 0, 0, SERVES(format),
        "mp3", "for requests that name no response_format"},
    {SERVE, "Server", 0, "idle", "MINUTES", OPTION_NUMBER, 0, 525600, SERVES(idle_minutes), "0",
        "after so long without a speech give back all memory of the model, also a GPU's; the next "
        "speech "
        "opens it again (0: never)"},
    {SERVE, "Server", 0, "opening", "SECONDS", OPTION_INTEGER, 0, 86400, SERVES(opening_s), "600",
        "a worker that has not opened the model by then is replaced, and speeches that wait for it are "
        "refused (0: it may take any time)"},
    {SERVE, "Server", 0, "drain", "SECONDS", OPTION_INTEGER, 0, 3600, SERVES(drain_s), "30",
        "how long speeches may go on after SIGTERM; a second one ends them at once"},
    {SERVE, "Server", 0, "control-tokens", NULL, OPTION_FLAG, 0, 0, SERVES(control_tokens), NULL,
        "what spells a control token in a request's texts is one, as for the official package; without "
        "it "
        "it is its characters"},
    {SERVE, "Server", 0, "no-cage", NULL, OPTION_FLAG, 0, 0, SERVES(no_cage), NULL,
        "let the processes that speak and that read recordings keep all rights of the user (files, "
        "network, programs); the log's worker_ready tells what they have given up"},
    {SERVE, "Server", 0, "insecure", NULL, OPTION_FLAG, 0, 0, SERVES(insecure), NULL,
        "listen on any address without keys, under any name"},

    {SERVE, "Machine", 0, "device", "LIST", OPTION_TEXT, 0, 0, AT(device), "auto",
        "where to compute, a worker for each, with commas between: auto, cpu, cuda, cuda:N, cuda:all, "
        "cpu:CORES (cpu:0-7,cpu:8-15)"},
    {(ALL & ~(TOKENS | VOICES | MIX | SERVE)) | USE, "Machine", 0, "device", "auto|cpu|cuda[:N]",
        OPTION_TEXT, 0, 0, AT(device), "auto",
        "where to compute; auto: on the first GPU where it can be used, else on the CPU; "
        "kernels by name mean the CPU unless cuda is given"},
    {ALL & ~(TOKENS | VOICES | MIX), "Machine", 0, "threads", "N", OPTION_INTEGER, 0, 1024, AT(threads),
        "0", "0: one for each core; the samples do not depend on it"},
    {ALL & ~(TOKENS | VOICES | MIX), "Machine", 0, "kernels", "NAME", OPTION_TEXT, 0, 0, AT(kernels),
        NULL, "a set of kernels that utter info names (default: the best one here)"},
    {(ALL | LINES) & ~(TOKENS | VOICES | MIX), "Machine", 0, "weights", "bf16|q8|q4|q8-predictor",
        OPTION_CHOICE, 0, 0, AT(weights), NULL,
        "hold what every frame reads in 8 or 4 bits, or the predictor's part alone in 8; bf16: as the "
        "model has it, but a CPU makes the sound with 16 bits as beside 8 and 4 (default: exact)"},
    {QUANTIZE, "Machine", 0, "weights", "q8|q4", OPTION_CHOICE, 0, 0, AT(weights), NULL,
        "the bits of what every frame reads: 8 or 4"},
    {BENCH | SERVE, "Machine", 0, "snapshots", "MB", OPTION_INTEGER, 0, 1048576, AT(snapshots), "256",
        "most memory for what utterances of one voice have in common, 0 is off"},

    {SAY, "Report", 0, "trace", "FILE", OPTION_TEXT, 0, 0, AT(trace), NULL,
        "write where the time went, frame by frame, as a JSON trace for chrome://tracing"},
    {SAY, "Report", 0, "stats", NULL, OPTION_FLAG, 0, 0, AT(stats), NULL,
        "say on stderr how the speech ended and what took how long"},
    {((ALL | LOAD | LINES) & ~(DECODE | ENCODE | DESIGN | MIX | SERVE)) | MODELS, "Report", 0, "json",
        NULL, OPTION_FLAG, 0, 0, AT(json), NULL, "the result as JSON on standard output"},
    {SAY | READ | DECODE | ENCODE | CLONE | DESIGN | MIX | BENCH | QUANTIZE | PULL | ALIGN | LINES |
            WORK,
        "Report", 'q', "quiet", NULL, OPTION_FLAG, 0, 0, AT(quiet), NULL, "no progress and no notes"},
    {SERVE, "Report", 'q', "quiet", NULL, OPTION_FLAG, 0, 0, SERVES(quiet), NULL,
        "no log: else each speech is a line of JSON on standard error, without its text"},
    {ALL | LINES | COMMAND_JOB | LOAD | QUANTIZE | MODELS | PULL | USE | COMMAND_COMPLETION, "Report",
        'h', "help", NULL, OPTION_FLAG, 0, 0, AT(help), NULL, "this help"},
};

enum { N_ROWS = sizeof option_table / sizeof *option_table };

size_t options_count(void)
{
    return N_ROWS - 1 + (size_t)parameter_count;
}

/* The row of `row`'s place that parameter i has. */
static struct option parameter_row(const struct option *row, size_t i)
{
    const struct parameter *p = &parameter_table[i];
    return (struct option){.commands = row->commands,
        .group = row->group,
        .name = p->option,
        .value = p->integer ? "N" : "X",
        .kind = p->integer ? OPTION_INTEGER : OPTION_NUMBER,
        .low = p->above ? DBL_MIN : p->low,
        .high = p->most_asked,
        .setting = AT(sampling) + i * sizeof(struct setting),
        .help = p->help};
}

struct option option_at(size_t i)
{
    size_t first = 0;
    while (option_table[first].kind != OPTION_PARAMETERS) {
        first++;
    }
    if (i >= first && i < first + (size_t)parameter_count) {
        return parameter_row(&option_table[first], i - first);
    }
    return option_table[i < first ? i : i + 1 - (size_t)parameter_count];
}
