/* SPDX-License-Identifier: Apache-2.0
 * Lines for people, on stderr and stdout. */
#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static FILE *people; /* standard error of before, while it is closed to others; NULL: it is stderr */
static bool line_is_open;  /* a progress line stands on the terminal */
static size_t line_number; /* of a list of texts, that lines for people are about; 0: none */

static FILE *to_people(void)
{
    return people ? people : stderr;
}

void report_alone(void)
{
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3),
        nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    people = kept >= 0 && nowhere >= 0 ? fdopen(kept, "w") : NULL;
    if (people) {
        setvbuf(people, NULL, _IOLBF, 0);
        dup2(nowhere, STDERR_FILENO);
    } else if (kept >= 0) {
        close(kept);
    }
    if (nowhere >= 0) {
        close(nowhere);
    }
}

void report_with_others(void)
{
    if (people) {
        fflush(people);
        dup2(fileno(people), STDERR_FILENO);
        fclose(people);
        people = NULL;
    }
}

void report_line(size_t number)
{
    line_number = number;
}

bool progress_shown(void)
{
    return isatty(fileno(to_people())) == 1;
}

void progress_clear(void)
{
    if (line_is_open) {
        fputs("\r\033[K", to_people());
        line_is_open = false;
    }
}

/* One line whatever happens: names and texts may hold line breaks, or characters that steer a terminal (below a blank,
 * and U+0080 to U+009F). */
static void make_line(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 127) {
            *c = ' ';
        } else if (*c == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0) {
            c[0] = c[1] = ' ';
        }
    }
}

static void print_line(const char *head, const char *format, va_list arguments)
{
    char text[sizeof(utter_error) + 256];
    vsnprintf(text, sizeof text, format, arguments);
    make_line(text);
    progress_clear();
    fputs(head, to_people());
    if (line_number > 0) {
        fprintf(to_people(), "line %zu: ", line_number);
    }
    fprintf(to_people(), "%s\n", text);
}

int fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("utter: ", format, arguments);
    va_end(arguments);
    return code;
}

bool say_no(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("utter: ", format, arguments);
    va_end(arguments);
    return false;
}

int fail_status(utter_status status, const utter_error *error)
{
    int code = error_exit_code(status); /* 0: what could not be done now, which is no success either */
    return fail(code ? code : 2, "%s", error->text[0] ? error->text : utter_status_text(status));
}

int fail_output(utter_status status, const utter_error *error)
{
    fail_status(status, error);
    return status == UTTER_E_FILE ? 2 : error_exit_code(status);
}

void note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("utter: note: ", format, arguments);
    va_end(arguments);
}

void note_from_library(void *unused, const char *line)
{
    (void)unused;
    note("%s", line);
}

void progress(const char *format, ...)
{
    if (!progress_shown()) {
        return;
    }
    progress_clear();
    va_list arguments;
    va_start(arguments, format);
    line_is_open = vfprintf(to_people(), format, arguments) > 0;
    va_end(arguments);
    fflush(to_people());
}

void put_line(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) >= 0) {
        make_line(text);
        puts(text);
        free(text);
    }
    va_end(arguments);
}

int finish_output(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return fail(2, "standard output: %s", strerror(errno));
    }
    return code;
}

int report_json(json_t *object)
{
    if (!object) {
        return fail(2, "out of memory");
    }
    int failed = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
    /* What cannot be written is told when standard output is flushed. */
    return failed && !ferror(stdout) ? fail(2, "out of memory") : 0;
}

json_t *json_name(const char *name)
{
    char quoted[4 * 4096];
    json_t *plain = name ? json_string(name) : json_null();
    return plain ? plain : json_string(error_quote(quoted, sizeof quoted, name, strlen(name)));
}
