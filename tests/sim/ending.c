/* SPDX-License-Identifier: Apache-2.0
 * Two clients are there when the server is told to stop: one has connected and asks a moment later, the other has asked
 * in the middle of its handshake. Both must be told, a newcomer must not get in, and a server without clients must end
 * at once. All that wherever between two ticks of the server's clock the signal comes. */
#include "tests/sim/ending.h"

#include <string.h>

#include "tests/sim/client.h"
#include "tests/sim/kernel.h"
#include "tests/sim/life.h"
#include "tests/sim/model.h"

enum { PHASES = 20, RATE = 8000 };
static const double opened_s = 20, phase_s = 0.1 / PHASES, before_s = 0.01;

static struct {
    int drain_s, phase;
    double asks_s;                              /* after the signal; 0: nobody is there */
    struct alarm waits, connects, stops, comes; /* the last: too late */
} run;

static void come(double handshake_s, double asks_s)
{
    client_new(&(struct client_plan){.kind = CLIENT_RAW,
        .n_requests = 1,
        .least_bytes = 20,
        .most_bytes = 40,
        .leaves_s = -1,
        .handshake_s = handshake_s,
        .asks_s = asks_s,
        .key = -1,
        .address = 0x0A000001});
}

static void wait_with_asking(void *user)
{
    (void)user;
    come(0, before_s + run.asks_s);
}

static void begin_to_connect(void *user)
{
    (void)user;
    come(before_s + 0.9 * run.asks_s, 0);
}

static void stop(void *user)
{
    (void)user;
    life_stop(false);
}

static void come_too_late(void *user)
{
    (void)user;
    come(0, 0);
}

static void prepare(struct serve_options *options)
{
    const double stops_s = opened_s + run.phase * phase_s;
    options->drain_s = run.drain_s;
    model_plan = (struct model_plan){
        .shape = &model_shapes[MODEL_H200], .sample_rate = RATE, .frame_samples = RATE * 8 / 100};
    if (run.asks_s > 0) {
        alarm_set(&run.waits, stops_s - before_s, wait_with_asking, NULL);
        alarm_set(&run.connects, stops_s - before_s, begin_to_connect, NULL);
        alarm_set(&run.comes, stops_s + 0.5 * run.asks_s, come_too_late, NULL);
    }
    alarm_set(&run.stops, stops_s, stop, NULL);
}

/* Whether all of it was so wherever the signal came. */
static bool end_between_ticks(int drain_s, double asks_s)
{
    int n_told = 0, n_let_in = 0;
    double longest_s = 0;
    for (int i = 0; i < PHASES; i++) {
        memset(&run, 0, sizeof run);
        run.drain_s = drain_s;
        run.asks_s = asks_s;
        run.phase = i;
        double took_s = life_live(1, prepare) - opened_s - i * phase_s;
        alarm_clear(&run.waits);
        alarm_clear(&run.connects);
        alarm_clear(&run.stops);
        alarm_clear(&run.comes);
        longest_s = took_s > longest_s ? took_s : longest_s;
        n_told += (int)seen.n_speech_refused[503];
        n_let_in += (int)seen.n_clients;
    }
    const int n = asks_s > 0 ? 2 * PHASES : 0;
    const bool good = n_told == n && n_let_in == n && longest_s < asks_s + 0.4;
    world_say("told to stop %d times with a drain of %d s: of %d who were about to ask within %.0f ms "
              "%d were told, %d came in, the end after %.0f ms at most%s\n",
        PHASES, drain_s, n, 1e3 * asks_s, n_told, n_let_in, 1e3 * longest_s,
        good ? "" : ", NOT as it should be");
    return good;
}

int ending_run(void)
{
    const bool nobody = end_between_ticks(30, 0), now = end_between_ticks(0, 0.08),
               later = end_between_ticks(30, 0.45);
    return nobody && now && later ? 0 : 1;
}
