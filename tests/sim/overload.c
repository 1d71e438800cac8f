/* SPDX-License-Identifier: Apache-2.0
 * Texts of 5 to 60 words come by chance, whoever else is there, at rates up to ten times what fits. Told for each: how
 * many are heard as they should be, when the first sound comes, how soon the others are told. */
#include "tests/sim/overload.h"

#include <math.h>

#include "server/loop/server.h"
#include "tests/sim/client.h"
#include "tests/sim/kernel.h"
#include "tests/sim/life.h"
#include "tests/sim/model.h"

enum { LEAST_BYTES = 32, MOST_BYTES = 370, WARM_S = 40, RATE = 8000 };

/* What the front end takes of a processor: measured, a refusal costs about 60 us of one core. */
static const double call_s = 6e-6, kib_s = 2e-6;

static struct {
    const struct model_shape *shape;
    double rate, seconds;
    struct alarm arrival, phase;
    size_t most_bytes;
    double running, capacity; /* sums, at each arrival */
} run;

/* Of one rate, in the time that is looked at. */
struct result {
    double asked, good, first_p50_s, first_p99_s, refused_p99_s;
    uint64_t n_whole, n_with_gaps, n_broken;
    size_t most_bytes;
    double running, capacity; /* means, as those who come find them */
};
static struct result result;

static void come(void *user)
{
    const struct server *s = life_server();
    (void)user;
    client_new(&(struct client_plan){.kind = CLIENT_RAW,
        .n_requests = 1,
        .least_bytes = LEAST_BYTES,
        .most_bytes = MOST_BYTES,
        .leaves_s = -1,
        .key = -1,
        .address = 0x0A000001});
    size_t bytes = s->held_bytes + s->unsent_bytes;
    run.most_bytes = bytes > run.most_bytes ? bytes : run.most_bytes;
    run.running += s->n_running;
    run.capacity += s->capacity;
    alarm_set(&run.arrival, draw_wait(1 / run.rate), come, NULL);
}

static void sum_up(void *user)
{
    (void)user;
    result = (struct result){.asked = (double)seen.n_asked / run.seconds,
        .good = (double)seen.n_good / run.seconds,
        .first_p50_s = series_percentile(&seen.firsts_s, 50),
        .first_p99_s = series_percentile(&seen.firsts_s, 99),
        .refused_p99_s = series_percentile(&seen.refused_s, 99),
        .n_whole = seen.n_whole,
        .n_with_gaps = seen.n_with_gaps,
        .n_broken = seen.n_broken,
        .most_bytes = run.most_bytes,
        .running = run.running / (double)seen.n_asked,
        .capacity = run.capacity / (double)seen.n_asked};
    alarm_clear(&run.arrival);
    life_stop();
}

static void begin_looking(void *user)
{
    (void)user;
    clients_forget();
    run.most_bytes = 0;
    run.running = run.capacity = 0;
    alarm_set(&run.phase, run.seconds, sum_up, NULL);
}

static void prepare(struct serve_options *options)
{
    *options = (struct serve_options){.model = "simulated",
        .host = "127.0.0.1",
        .device = "auto",
        .port = 8080,
        .threads = 2,
        .queue = 64,
        .patience_ms = 300,
        .paced = true,
        .format = "pcm",
        .drain_s = 30,
        .quiet = true};
    model_plan = (struct model_plan){
        .shape = run.shape, .sample_rate = RATE, .frame_samples = RATE * 8 / 100, .unsteady = 0.1};
    kernel_set_costs(call_s, kib_s);
    alarm_set(&run.arrival, 20, come, NULL); /* the model is open */
    alarm_set(&run.phase, 20 + WARM_S, begin_looking, NULL);
}

static struct result run_at(const struct model_shape *shape, double rate, double seconds)
{
    run.shape = shape;
    run.rate = rate;
    run.seconds = seconds;
    life_live(1, prepare);
    return result;
}

static void tell(double factor, const struct result *r)
{
    world_say("%5.1f  %8.2f  %8.3f  %7.1f %7.1f  %7.2f  %6llu  %6llu  %5llu  %7zu  %6.1f  %6.1f\n",
        factor, r->asked, r->good, 1e3 * r->first_p50_s, 1e3 * r->first_p99_s, 1e3 * r->refused_p99_s,
        (unsigned long long)r->n_whole, (unsigned long long)r->n_with_gaps,
        (unsigned long long)r->n_broken, r->most_bytes >> 10, r->running, r->capacity);
}

static void run_shape(const struct model_shape *shape, double only)
{
    static const double factors[] = {0.5, 0.8, 1, 1.2, 1.5, 2, 10};
    double speech_s = (LEAST_BYTES + MOST_BYTES) / 2.0 / 14;
    double fits = 0.8 * model_most_throughput(shape) / speech_s;
    world_say("%s: %.2f requests a second would fit\n"
              "times     asked  good a s  p50 ms  p99 ms  refused   whole    gaps broken      KiB "
              "running of capacity\n",
        shape->name, fits);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        if (only > 0 && fabs(factors[i] - only) > 1e-9) {
            continue;
        }
        struct result r = run_at(shape, factors[i] * fits, factors[i] >= 2 ? 600 : 200);
        tell(factors[i], &r);
    }
}

int overload_run(int shape, double only)
{
    for (int i = 0; i < MODEL_SHAPES; i++) {
        if (shape < 0 || i == shape) {
            run_shape(&model_shapes[i], only);
        }
    }
    return 0;
}
