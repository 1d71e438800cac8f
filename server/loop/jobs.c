/* SPDX-License-Identifier: Apache-2.0
 * Threads that read jobs from one pipe and write them to another. */
#include "server/loop/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/minmax.h"

enum { MAX_THREADS = 16 };

struct jobs {
    int to[2], back[2];
    pthread_t threads[MAX_THREADS];
    int n_threads;
    struct event *came_back;
};

static void *work(void *user)
{
    struct jobs *jobs = user;
    struct job *job;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (true) {
        ssize_t n = read(jobs->to[0], &job, sizeof job);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n != (ssize_t)sizeof job) {
            return NULL;
        }
        job->run(job);
        /* The pipe back has room for every job that the pipe here has room for. */
        while (write(jobs->back[1], &job, sizeof job) < 0 && errno == EINTR) {
        }
    }
}

static void take_back(evutil_socket_t socket, short what, void *user)
{
    struct job *job;
    (void)what, (void)user;
    while (read(socket, &job, sizeof job) == (ssize_t)sizeof job) {
        job->done(job);
    }
}

struct jobs *jobs_new(struct event_base *base, int n_threads)
{
    struct jobs *jobs = memory_new(1, sizeof *jobs);
    if (!jobs) {
        return NULL;
    }
    jobs->to[0] = jobs->to[1] = jobs->back[0] = jobs->back[1] = -1;
    if (pipe2(jobs->to, O_CLOEXEC) != 0 || pipe2(jobs->back, O_CLOEXEC) != 0) {
        jobs_free(jobs);
        return NULL;
    }
    fcntl(jobs->to[1], F_SETFL, O_NONBLOCK);
    fcntl(jobs->back[0], F_SETFL, O_NONBLOCK);
    jobs->came_back = event_new(base, jobs->back[0], EV_READ | EV_PERSIST, take_back, jobs);
    bool good = jobs->came_back && event_priority_set(jobs->came_back, 0) == 0 &&
                event_add(jobs->came_back, NULL) == 0;
    n_threads = min(n_threads, MAX_THREADS);
    while (good && jobs->n_threads < n_threads) {
        good = pthread_create(&jobs->threads[jobs->n_threads], NULL, work, jobs) == 0;
        jobs->n_threads += good;
    }
    if (!good) {
        jobs_free(jobs);
        return NULL;
    }
    return jobs;
}

bool jobs_submit(struct jobs *jobs, struct job *job)
{
    return write(jobs->to[1], &job, sizeof job) == (ssize_t)sizeof job;
}

void jobs_free(struct jobs *jobs)
{
    if (!jobs) {
        return;
    }
    if (jobs->to[1] >= 0) {
        close(jobs->to[1]);
        jobs->to[1] = -1;
    }
    for (int i = 0; i < jobs->n_threads; i++) {
        pthread_join(jobs->threads[i], NULL);
    }
    if (jobs->came_back) {
        take_back(jobs->back[0], EV_READ, jobs);
        event_free(jobs->came_back);
    }
    for (int i = 0; i < 2; i++) {
        if (jobs->back[i] >= 0) {
            close(jobs->back[i]);
        }
    }
    if (jobs->to[0] >= 0) {
        close(jobs->to[0]);
    }
    memory_free(jobs);
}
