/* SPDX-License-Identifier: Apache-2.0
 * utter job submit, retry, status and collect. */
#include "cli/job/job_lines.h"

#include "cli/report.h"
#include "cli/speak/saying.h"

int command_job(const struct invocation *invocation)
{
    if (invocation->n_words > 0) {
        return fail(1, "job: '%s' is none of submit, work, status, retry, collect (utter job --help)",
            invocation->words[0]);
    }
    return fail(1, "job: what should it do? (utter job --help)");
}

/* ---- What is to be done, into the queue ---- */

static int need(const char *command, const struct setting *setting, const char *option)
{
    return setting->given ? 0
                          : fail(1, "%s: --%s is missing (utter %s --help)", command, option, command);
}

static int tell_submitted(const struct settings *s, const struct job_counts *c)
{
    unsigned long long lines = c->lines, done = c->done, failed = c->failed, missing = c->missing;
    if (!s->quiet.given && failed > 0 && missing + done < lines) {
        note("%llu lines have failed (utter job retry tries them again)", failed);
    }
    if (s->json.given) {
        return report_json(json_pack("{s:I,s:I,s:I,s:I,s:I}", "lines", (json_int_t)lines, "done",
            (json_int_t)done, "not_whole", (json_int_t)c->not_whole, "failed", (json_int_t)failed,
            "submitted", (json_int_t)missing));
    }
    put_line("%llu lines: %llu have a result, %llu are submitted", lines, done, missing);
    return 0;
}

static int submit(const struct invocation *invocation, bool retry)
{
    const struct settings *s = &invocation->settings;
    const char *name = invocation->command->name;
    struct job_lines lines = {0};
    struct queue *queue = NULL;
    struct job_counts counts = {0};
    utter_error error = {0};
    int code = need(name, &s->queue, "queue");
    code = code ? code : need(name, &s->results, "results");
    code = code ? code : job_lines_open(&lines, invocation, true);
    if (code == 0) {
        lines.job.retry = retry;
        code = job_lines_told(job_check(&lines.job, &error), &error);
    }
    if (code == 0) {
        utter_status status = queue_open(&queue, s->queue.text, true, &error);
        status = status ? status : job_submit(&lines.job, queue, &counts, &error);
        code = job_lines_told(status, &error);
    }
    queue_close(&queue);
    job_lines_close(&lines);
    return code ? code : tell_submitted(s, &counts);
}

int command_job_submit(const struct invocation *invocation)
{
    return submit(invocation, false);
}

int command_job_retry(const struct invocation *invocation)
{
    return submit(invocation, true);
}

/* ---- What there is ---- */

static json_t *queue_object(const struct queue_counts *c)
{
    json_t *object =
        json_pack("{s:I,s:I}", "waiting", (json_int_t)c->waiting, "claimed", (json_int_t)c->claimed);
    if (object && c->all) {
        json_object_set_new(object, "done", json_integer((json_int_t)c->done));
        json_object_set_new(object, "failed", json_integer((json_int_t)c->failed));
    }
    return object;
}

static json_t *results_object(const struct job_counts *c)
{
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:f}", "lines", (json_int_t)c->lines, "done",
        (json_int_t)c->done, "not_whole", (json_int_t)c->not_whole, "failed", (json_int_t)c->failed,
        "missing", (json_int_t)c->missing, "seconds", c->seconds);
}

static void put_results(const struct job_counts *c)
{
    put_line("results: %llu of %llu lines are done, %llu of them not whole; %llu failed, %llu missing; "
             "%.1f s of speech",
        (unsigned long long)c->done, (unsigned long long)c->lines, (unsigned long long)c->not_whole,
        (unsigned long long)c->failed, (unsigned long long)c->missing, c->seconds);
}

static void put_queue(const struct queue_counts *c)
{
    put_line("queue: %llu lines wait, %llu are being made", (unsigned long long)c->waiting,
        (unsigned long long)c->claimed);
    if (c->all) {
        put_line("       %llu are done, %llu failed", (unsigned long long)c->done,
            (unsigned long long)c->failed);
    }
}

static int look_at_queue(const struct settings *s, struct queue_counts *counts)
{
    struct queue *queue = NULL;
    utter_error error = {0};
    utter_status status = queue_open(&queue, s->queue.text, false, &error);
    status = status ? status : queue->calls->count(queue, counts, &error);
    queue_close(&queue);
    return status ? fail_status(status, &error) : 0;
}

static int look_at_results(
    const struct invocation *invocation, const char *folder, struct job_counts *counts)
{
    struct job_lines lines = {0};
    utter_error error = {0};
    int code = job_lines_open(&lines, invocation, false);
    if (code == 0) {
        code = job_lines_told(job_collect(&lines.job, folder, counts, &error), &error);
    }
    job_lines_close(&lines);
    return code;
}

int command_job_status(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    const bool manifest = invocation->n_words > 0;
    struct queue_counts queue = {0};
    struct job_counts results = {0};
    if (!s->queue.given && !manifest) {
        return fail(1, "job status: --queue, or a manifest with --results, says of what");
    }
    int code = s->queue.given ? look_at_queue(s, &queue) : 0;
    code = code || !manifest ? code : need("job status", &s->results, "results");
    code = code || !manifest ? code : look_at_results(invocation, NULL, &results);
    if (code) {
        return code;
    }
    if (s->json.given) {
        json_t *object = json_object();
        if (s->queue.given) {
            json_object_set_new(object, "queue", queue_object(&queue));
        }
        if (manifest) {
            json_object_set_new(object, "results", results_object(&results));
        }
        return report_json(object);
    }
    if (s->queue.given) {
        put_queue(&queue);
    }
    if (manifest) {
        put_results(&results);
    }
    return 0;
}

int command_job_collect(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    struct job_counts counts = {0};
    int code = need("job collect", &s->results, "results");
    code = code ? code : need("job collect", &s->output, "output");
    code = code ? code : look_at_results(invocation, s->output.text, &counts);
    if (code) {
        return code;
    }
    if (s->json.given) {
        code = report_json(results_object(&counts));
    } else {
        put_results(&counts);
    }
    if (code == 0 && counts.done == 0 && !s->quiet.given) {
        note("there is no result of any line: the model, its weights and the options of the lines are "
             "to be those of utter job submit");
    }
    return code ? code : counts.missing + counts.failed + counts.not_whole > 0 ? EXIT_NOT_WHOLE : 0;
}
