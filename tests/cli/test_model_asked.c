/* SPDX-License-Identifier: Apache-2.0
 * From settings to a model and to what a stream of it is asked for; and what utter info tells of a posed model, line by
 * line, and what utter verify and align-heads tell of posed checks and heads. */
#include "cli/model/checkpoint.h"

#include "base/memory.h"
#include "cli/defaults.h"
#include "tests/cli/typed.h"

#define CHECKPOINTS "build/checkpoints/"
#define MODEL CHECKPOINTS "eos-first"

/* ---- The library ---- */

static utter_model_options opened; /* as it was asked for last */
static char opened_device[128], opened_path[PATH_MAX];
static utter_model_info posed;
static bool is_posed;
static int n_gpus;

utter_status __real_utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error);
utter_status __wrap_utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error);
utter_status __real_utter_model_get_info(const utter_model *model, utter_model_info *info);
utter_status __wrap_utter_model_get_info(const utter_model *model, utter_model_info *info);
bool __wrap_utter_gpu_name(char *name, size_t size, int index);

utter_status __wrap_utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error)
{
    opened = *options;
    snprintf(opened_device, sizeof opened_device, "%s", options->device);
    snprintf(opened_path, sizeof opened_path, "%s", path ? path : "");
    utter_model_options plain = *options;
    plain.device = "cpu";
    plain.cpu_kernels = NULL;
    return __real_utter_model_open(model, path, &plain, error);
}

utter_status __wrap_utter_model_get_info(const utter_model *model, utter_model_info *info)
{
    assert_int_equal(info->size, sizeof *info);
    if (is_posed) {
        *info = posed;
        return UTTER_OK;
    }
    return __real_utter_model_get_info(model, info);
}

bool __wrap_utter_gpu_name(char *name, size_t size, int index)
{
    snprintf(name, size, "posed GPU %d", index);
    return index < n_gpus;
}

/* ---- A model ---- */

static void open_model(const char *words)
{
    utter_model *model;
    char all[512];
    snprintf(all, sizeof all, "-m " MODEL " %s", words);
    typed_parse(COMMAND_BENCH, all);
    assert_int_equal(checkpoint_open(&model, &typed.settings, 3), 0);
    utter_model_close(&model);
}

static void a_model_is_opened_as_it_was_typed(void **state)
{
    (void)state;
    open_model("");
    assert_string_equal(opened_path, MODEL);
    assert_string_equal(opened_device, "auto");
    assert_int_equal(opened.n_threads, 0);
    assert_null(opened.cpu_kernels);
    assert_int_equal(opened.n_lanes, 3);
    assert_int_equal(opened.weights, UTTER_WEIGHTS_STORED);
    assert_true(opened.snapshot_bytes == 256 << 20);
    assert_string_equal(opened.cache, defaults_cache());
    assert_ptr_equal(opened.log, note_from_library);
    assert_int_equal(opened.pretokenizer, UTTER_PRETOKENIZER_OFFICIAL);
    open_model("--device cuda:1 --threads 5 --kernels plain --weights q4 --snapshots 3 -q");
    assert_string_equal(opened_device, "cuda:1");
    assert_int_equal(opened.n_threads, 5);
    assert_string_equal(opened.cpu_kernels, "plain");
    assert_int_equal(opened.weights, UTTER_WEIGHTS_Q4);
    assert_true(opened.snapshot_bytes == 3 << 20);
    assert_null(opened.log);
    /* As another card, which is one of CUDA's. */
    open_model("--as small");
    assert_string_equal(opened_device, "cuda as small");
    open_model("--as small --device cuda:1");
    assert_string_equal(opened_device, "cuda:1 as small");
    static const struct {
        const char *typed;
        utter_weights weights;
    } rows[] = {{"bf16", UTTER_WEIGHTS_BF16}, {"q8", UTTER_WEIGHTS_Q8}, {"q4", UTTER_WEIGHTS_Q4},
        {"q8-predictor", UTTER_WEIGHTS_Q8_PREDICTOR}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct settings s = {.weights.text = rows[i].typed};
        assert_int_equal(checkpoint_weights(&s), rows[i].weights);
    }
    /* Who looks at a model alone takes no GPU. */
    utter_model *model;
    typed_parse(COMMAND_TOKENS, "a --pretokenizer native -m " MODEL);
    typed.settings.device.text = "cuda";
    assert_int_equal(checkpoint_look(&model, &typed.settings), 0);
    assert_string_equal(opened_device, "cpu");
    assert_int_equal(opened.n_lanes, 1);
    assert_int_equal(opened.pretokenizer, UTTER_PRETOKENIZER_NATIVE);
    utter_model_close(&model);
}

/* ---- A stream ---- */

static void a_stream_is_asked_for_what_was_typed(void **state)
{
    (void)state;
    utter_model *model;
    utter_stream_options o, usual;
    utter_voice *voice;
    assert_int_equal(__real_utter_model_open(&model, MODEL, NULL, NULL), UTTER_OK);
    assert_int_equal(utter_stream_options_init(&usual, model), UTTER_OK);
    typed_parse(COMMAND_SAY, "a -q");
    assert_int_equal(checkpoint_stream_options(&o, &voice, model, &typed.settings), 0);
    assert_string_equal(utter_voice_name(voice), utter_model_voice_name(model, 0));
    assert_ptr_equal(o.voice, voice);
    assert_string_equal(o.language, "auto");
    assert_null(o.instruct);
    assert_int_equal(o.layout, UTTER_LAYOUT_AUTO);
    assert_int_equal(o.seed, 0);
    assert_int_equal(o.max_frames, usual.max_frames);
    assert_true(o.guard);
    assert_memory_equal(&o.talker, &usual.talker, sizeof usual.talker);
    assert_memory_equal(&o.predictor, &usual.predictor, sizeof usual.predictor);
    utter_voice_free(&voice);
    typed_parse(COMMAND_SAY,
        "a -q -v ryan -l german --instruct Calm. --layout stream --seed 5 --max-frames 6 --no-guard "
        "--temperature 0.5 --top-k 7 --top-p 0.25 --repetition-penalty 1.5 --sub-temperature 0.75 "
        "--sub-top-k 8 --sub-top-p 0.125");
    assert_int_equal(checkpoint_stream_options(&o, &voice, model, &typed.settings), 0);
    assert_string_equal(utter_voice_name(voice), "ryan");
    assert_string_equal(o.language, "german");
    assert_string_equal(o.instruct, "Calm.");
    assert_int_equal(o.layout, UTTER_LAYOUT_STREAM);
    assert_int_equal(o.seed, 5);
    assert_int_equal(o.max_frames, 6);
    assert_false(o.guard);
    assert_true(o.talker.temperature == 0.5F && o.talker.top_k == 7 && o.talker.top_p == 0.25F);
    assert_true(o.talker.repetition_penalty == 1.5F && o.predictor.temperature == 0.75F);
    assert_true(o.predictor.top_k == 8 && o.predictor.top_p == 0.125F);
    utter_voice_free(&voice);
    typed_parse(COMMAND_SAY, "a -q --layout full --greedy --top-k 7");
    assert_int_equal(checkpoint_stream_options(&o, &voice, model, &typed.settings), 0);
    assert_int_equal(o.layout, UTTER_LAYOUT_FULL);
    assert_true(o.talker.temperature == 0 && o.predictor.temperature == 0 && o.talker.top_k == 7);
    utter_voice_free(&voice);
    static const char *const words[] = {"a --greedy --temperature 1", "a --greedy --sub-temperature 0"};
    static const char *const says[] = {"utter: --greedy: contradicts --temperature (give one of them)",
        "utter: --greedy: contradicts --sub-temperature (give one of them)"};
    for (int i = 0; i < 2; i++) {
        typed_parse(COMMAND_SAY, words[i]);
        heard_begin();
        int code = checkpoint_stream_options(&o, &voice, model, &typed.settings);
        heard_assert(says[i]);
        assert_int_equal(code, 1);
        assert_null(voice);
    }
    utter_model_close(&model);
}

/* A model that speaks with any voice says what would tell it which. */
static void a_voice_that_is_left_to_chance_is_told(void **state)
{
    (void)state;
    static const char base[] =
        "utter: note: a base model speaks with cloned voices (-v NAME.voice); without one "
        "the voice is left to chance\n",
                      design[] =
                          "utter: note: a voice-design model speaks with the voice that --instruct "
                          "describes; without it the voice is left to chance\n";
    static const struct {
        const char *words, *says;
    } rows[] = {
        {"-m " CHECKPOINTS "tiny06-base", base},
        {"-q -m " CHECKPOINTS "tiny06-base", ""},
        {"-v @ann.voice -m " CHECKPOINTS "tiny06-base", ""},
        {"-m " CHECKPOINTS "tiny06-voice_design", design},
        {"-q -m " CHECKPOINTS "tiny06-voice_design", ""},
        {"--instruct Calm. -m " CHECKPOINTS "tiny06-voice_design", ""},
        {"-m " MODEL, ""},
    };
    typed_record();
    assert_int_equal(
        typed_run(COMMAND_CLONE, "@ref.wav -q -o @ann.voice --threads 1 -m " CHECKPOINTS "tiny06-base"),
        0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256];
        snprintf(words, sizeof words, "%s --threads 1 --max-frames 2 -o @a.wav Hi.", rows[i].words);
        typed_assert(COMMAND_SAY, words, 0, "", rows[i].says);
    }
}

/* ---- utter info ---- */

static void pose_info(void)
{
    posed = (utter_model_info){.size = sizeof posed,
        .kind_name = "posed",
        .size_name = "1b7",
        .device = "cuda",
        .kernels = "graph",
        .all_kernels = "graph, plain",
        .takes_instructions = true,
        .sample_rate = 24000,
        .frame_samples = 1920,
        .n_codebooks = 16,
        .codebook_size = 2048,
        .n_threads = 2,
        .n_voices = 9,
        .n_languages = 10,
        .width = 1024,
        .n_layers = 28,
        .predictor_width = 512,
        .predictor_layers = 5,
        .max_positions = 32768,
        .talker_parameters = 11100000,
        .predictor_parameters = 22200000,
        .vocoder_parameters = 33300000,
        .all_parameters = 400000001,
        .file_bytes = 44400000,
        .memory_bytes = 55500000,
        .frame_bytes = 66600000,
        .weights = "q8",
        .most_lanes = 77,
        .step_s = {0.01, 0.011, 0.012, 0.02, 0.021, 0.022, 0.04}};
}

static void each_number_of_a_model_has_its_line(void **state)
{
    (void)state;
    pose_info();
    is_posed = true;
    n_gpus = 2;
    typed_assert(COMMAND_INFO, "-m " MODEL " --device cuda", 0,
        "model        " MODEL " (-m)\n"
        "kind         posed, 1b7, takes instructions\n"
        "voices       9, languages 10\n"
        "talker       28 layers, width 1024, 11.1 M parameters\n"
        "predictor    5 layers, width 512, 22.2 M parameters\n"
        "vocoder      33.3 M parameters\n"
        "in all       400.0 M parameters\n"
        "frame        1920 samples at 24000 Hz, 16 codes of 0..2047\n"
        "positions    32768\n"
        "files        44.4 MB mapped\n"
        "memory       55.5 MB on top\n"
        "each frame   reads 66.6 MB of weights, mostly q8\n"
        "device       cuda, threads 2 (--device)\n"
        "kernels      graph (of graph, plain)\n"
        "GPU          cuda:0, posed GPU 0\n"
        "GPU          cuda:1, posed GPU 1\n"
        "foretold     a frame and its sound take 10.0 ms of one lane, 20.0 of 8, 40.0 of 64: 8, 32, "
        "128 times "
        "real time\n"
        "lanes        up to 77 fit into the GPU's memory\n",
        "");
    typed_assert(COMMAND_INFO, "--json -m " MODEL, 0,
        "{\"path\":\"" MODEL
        "\",\"chosen_by\":\"-m\",\"packed\":false,\"kind\":\"posed\",\"size\":\"1b7\","
        "\"takes_instructions\":true,\"voices\":9,\"languages\":10,\"width\":1024,\"layers\":28,"
        "\"predictor_width\":512,\"predictor_layers\":5,\"codebooks\":16,\"codebook_size\":2048,"
        "\"frame_samples\":1920,\"sample_rate\":24000,\"positions\":32768,\"talker_parameters\":"
        "11100000,"
        "\"predictor_parameters\":22200000,\"vocoder_parameters\":33300000,\"parameters\":400000001,"
        "\"file_bytes\":44400000,\"memory_bytes\":55500000,\"frame_bytes\":66600000,\"weights\":\"q8\","
        "\"device\":\"cuda\",\"threads\":2,\"kernels\":\"graph\",\"all_kernels\":\"graph, plain\","
        "\"most_lanes\":77,\"gpus\":[\"posed GPU 0\",\"posed GPU 1\"],\"foretold_steps\":["
        "{\"lanes\":1,\"seconds\":0.01},{\"lanes\":2,\"seconds\":0.011},{\"lanes\":4,\"seconds\":0.012}"
        ","
        "{\"lanes\":8,\"seconds\":0.02},{\"lanes\":16,\"seconds\":0.021},{\"lanes\":32,\"seconds\":0."
        "022},"
        "{\"lanes\":64,\"seconds\":0.04}]}\n",
        "");
    is_posed = false;
}

/* What a small one says of its size is its ancestor's. */
static void what_is_not_known_has_no_line(void **state)
{
    (void)state;
    pose_info();
    is_posed = true;
    n_gpus = 0;
    posed.all_parameters = 400000000;
    posed.takes_instructions = false;
    posed.most_lanes = 0;
    posed.step_s[0] = 0;
    assert_int_equal(typed_run(COMMAND_INFO, "-m " MODEL), 0);
    assert_non_null(strstr(typed_printed, "\nkind         posed\nvoices "));
    const char *end = "\nkernels      graph (of graph, plain)\n";
    assert_string_equal(typed_printed + strlen(typed_printed) - strlen(end), end);
    assert_int_equal(typed_run(COMMAND_INFO, "--json -m " MODEL), 0);
    assert_non_null(strstr(typed_printed, ",\"size\":null,\"takes_instructions\":false,"));
    end = ",\"gpus\":[],\"foretold_steps\":[]}\n";
    assert_string_equal(typed_printed + strlen(typed_printed) - strlen(end), end);
    is_posed = false;
    /* Who chose it, and that it is one file. */
    assert_int_equal(typed_run(COMMAND_QUANTIZE, "-q --weights q8 -o @packed -m " MODEL), 0);
    typed_parse(COMMAND_INFO, "");
    setenv("UTTER_MODEL", support_path("packed"), 1);
    assert_int_equal(defaults_apply(&typed), 0);
    printed_begin("printed");
    int code = command_info(&typed);
    char *printed = printed_end("printed");
    unsetenv("UTTER_MODEL");
    assert_int_equal(code, 0);
    const char *first = typed_in_folder("model        @packed, packed into one file (UTTER_MODEL)\n");
    assert_int_equal(strncmp(printed, first, strlen(first)), 0);
    free(printed);
}

/* ---- utter align-heads ---- */

static struct {
    utter_head heads[9];
    size_t n;
    char texts[512], path[PATH_MAX];
    int max_frames;
} aligned;

utter_status __wrap_utter_model_align_heads(utter_model *model, const utter_stream_options *options,
    const char *const *texts, size_t n, const char *path, utter_head **heads, size_t *n_heads,
    utter_error *error);

utter_status __wrap_utter_model_align_heads(utter_model *model, const utter_stream_options *options,
    const char *const *texts, size_t n, const char *path, utter_head **heads, size_t *n_heads,
    utter_error *error)
{
    assert_true(model && error);
    aligned.texts[0] = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(aligned.texts);
        snprintf(aligned.texts + at, sizeof aligned.texts - at, "%.20s|", texts[i]);
    }
    snprintf(aligned.path, sizeof aligned.path, "%s", path ? path : "none");
    aligned.max_frames = options->max_frames;
    *heads = memory_new(1, sizeof aligned.heads);
    memcpy(*heads, aligned.heads, sizeof aligned.heads);
    *n_heads = aligned.n;
    return UTTER_OK;
}

static void pose_heads(size_t n, size_t n_follow)
{
    aligned.n = n;
    for (size_t i = 0; i < n; i++) {
        aligned.heads[i] = (utter_head){.layer = (int)i + 5,
            .head = 15 - (int)i,
            .follows = i < n_follow,
            .score = 0.9 - 0.125 * (double)i};
    }
}

static void heads_are_told_in_their_order(void **state)
{
    (void)state;
    pose_heads(9, 2);
    typed_assert(COMMAND_ALIGN_HEADS, "--max-frames 7 -o @heads One Two.~Three. -m " MODEL, 0,
        "head    score\n"
        " 5.15    0.900  follows the text\n"
        " 6.14    0.775  follows the text\n"
        " 7.13    0.650\n"
        " 8.12    0.525\n"
        " 9.11    0.400\n"
        "10.10    0.275\n"
        "11.9     0.150\n",
        "utter: note: words of this model are timed by 2 heads\n");
    assert_string_equal(aligned.texts, "One|Two. Three.|");
    assert_string_equal(aligned.path, support_path("heads"));
    assert_int_equal(aligned.max_frames, 7);
    pose_heads(2, 1);
    typed_assert(COMMAND_ALIGN_HEADS, "-q -m " MODEL, 0,
        "head    score\n 5.15    0.900  follows the text\n 6.14    0.775\n", "");
    assert_int_equal(strncmp(aligned.texts, "The old lighthouse s|Please put the lette|", 42), 0);
    assert_string_equal(aligned.path, "none");
    pose_heads(2, 2); /* none is left over */
    typed_assert(COMMAND_ALIGN_HEADS, "--json One -m " MODEL, 0,
        "{\"approximate\":false,\"heads\":[{\"layer\":5,\"head\":15,\"score\":0.9,\"follows\":true},"
        "{\"layer\":6,\"head\":14,\"score\":0.775,\"follows\":true}]}\n",
        "");
    pose_heads(0, 0);
    typed_assert(
        COMMAND_ALIGN_HEADS, "--json One -m " MODEL, 1, "{\"approximate\":true,\"heads\":[]}\n", "");
}

/* ---- utter verify ---- */

static const utter_check *checks;
static size_t n_checks;
static utter_status verify_status;

utter_status __wrap_utter_model_verify(utter_model *model, const char *golden_path,
    utter_check_fn *report, void *user, utter_error *error);

utter_status __wrap_utter_model_verify(
    utter_model *model, const char *golden_path, utter_check_fn *report, void *user, utter_error *error)
{
    assert_non_null(model);
    assert_string_equal(golden_path, "golden");
    for (size_t i = 0; i < n_checks; i++) {
        report(user, &checks[i]);
    }
    snprintf(error->text, sizeof error->text, "%s", verify_status ? "posed" : "");
    return verify_status;
}

static void each_stage_is_told(void **state)
{
    (void)state;
    static const utter_check all[] = {{"tokens", true, 1, 1, "2 of 2"},
        {"samples", false, 0.5, 0.125, NULL}, {"scores", false, NAN, 0.25, "not a number"}};
    checks = all;
    n_checks = 3;
    typed_assert(COMMAND_VERIFY, "golden -m " MODEL, 1,
        "ok    tokens            1            (limit 1)  2 of 2\n"
        "FAIL  samples           0.5          (limit 0.125)  \n"
        "FAIL  scores            nan          (limit 0.25)  not a number\n"
        "DIFFERENT: 1 of 3 stages agree\n",
        "");
    typed_assert(COMMAND_VERIFY, "golden --json -m " MODEL, 1,
        "{\"checks\":3,\"failed\":2,\"stages\":[{\"stage\":\"tokens\",\"passed\":true,\"value\":1.0,"
        "\"limit\":1.0,\"detail\":\"2 of 2\"},{\"stage\":\"samples\",\"passed\":false,\"value\":0.5,"
        "\"limit\":0.125,\"detail\":null},{\"stage\":\"scores\",\"passed\":false,\"value\":null,"
        "\"limit\":0.25,\"detail\":\"not a number\"}]}\n",
        "");
    n_checks = 1;
    typed_assert(COMMAND_VERIFY, "golden -m " MODEL, 0,
        "ok    tokens            1            (limit 1)  2 of 2\nEQUAL: 1 of 1 stages agree\n", "");
    n_checks = 0;
    typed_assert(COMMAND_VERIFY, "golden -m " MODEL, 1, "",
        "utter: golden: holds nothing that can be compared\n");
    typed_assert(COMMAND_VERIFY, "golden --json -m " MODEL, 1, "",
        "utter: golden: holds nothing that can be compared\n");
    verify_status = UTTER_E_DEVICE;
    typed_assert(COMMAND_VERIFY, "golden --json -m " MODEL, 2, "", "utter: posed\n");
    verify_status = UTTER_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_opened_as_it_was_typed),
        cmocka_unit_test(a_stream_is_asked_for_what_was_typed),
        cmocka_unit_test(a_voice_that_is_left_to_chance_is_told),
        cmocka_unit_test(each_number_of_a_model_has_its_line),
        cmocka_unit_test(what_is_not_known_has_no_line),
        cmocka_unit_test(heads_are_told_in_their_order),
        cmocka_unit_test(each_stage_is_told),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, typed_start, typed_end);
}
