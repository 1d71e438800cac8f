/* SPDX-License-Identifier: Apache-2.0
 * A signal sets a flag, cancels the reading, and wakes a poll through a pipe. */
#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static utter_reading *volatile watched;
static int wake[2] = {-1, -1};

static void on_signal(int number)
{
    int kept = errno;
    came = number;
    if (watched) {
        utter_reading_cancel(watched);
    }
    /* The pipe holds one byte at most; that it is full says the same. */
    if (write(wake[1], "", 1) < 0) {
        errno = 0;
    }
    errno = kept;
}

bool interrupt_watch(utter_reading *reading)
{
    if (wake[0] < 0 && pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        return false;
    }
    watched = reading;
    /* SA_RESETHAND: the second signal does what it would have done without us. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
    bool watching = true;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && watching; i++) {
        /* Who started the program may have it ignore some: nohup, a shell's jobs in the background. */
        struct sigaction before;
        watching = sigaction(numbers[i], NULL, &before) == 0 &&
                   (before.sa_handler == SIG_IGN || sigaction(numbers[i], &action, NULL) == 0);
    }
    return watching;
}

void interrupt_forget(void)
{
    watched = NULL;
}

int interrupt_signal(void)
{
    return came;
}

bool interrupt_poll(int descriptor, bool wait)
{
    struct pollfd polled[] = {{descriptor, POLLIN, 0}, {wake[0], POLLIN, 0}};
    int n;
    do {
        n = poll(polled, 2, wait && !came ? -1 : 0);
    } while (n < 0 && errno == EINTR && !came);
    return n > 0 && polled[0].revents != 0;
}
