/* SPDX-License-Identifier: Apache-2.0
 * A stream of C whose bytes go to a file of base/file. */
#include "cli/text_file.h"

#include <stdio_ext.h>

#include "base/file.h"
#include "cli/report.h"

/* Of fopencookie. The file keeps why it failed, and says it when it is closed. */
static ssize_t write_out(void *out, const char *text, size_t n)
{
    return file_out_write(out, text, n, NULL) == UTTER_OK ? (ssize_t)n : 0;
}

int text_file_open(struct text_file *file, const char *path)
{
    utter_error error = {0};
    *file = (struct text_file){0};
    utter_status status = file_out_open(&file->out, path, &error);
    if (status) {
        return fail_output(status, &error);
    }
    file->lines = fopencookie(file->out, "w", (cookie_io_functions_t){.write = write_out});
    if (!file->lines) {
        text_file_abort(file);
        return fail(2, "out of memory");
    }
    return 0;
}

int text_file_close(struct text_file *file)
{
    utter_error error = {0};
    (void)fclose(file->lines);
    file->lines = NULL;
    utter_status status = file_out_close(&file->out, &error);
    return status ? fail_output(status, &error) : 0;
}

void text_file_abort(struct text_file *file)
{
    if (file->lines) {
        __fpurge(file->lines); /* standard output has enough of what failed */
        (void)fclose(file->lines);
    }
    file_out_abort(&file->out);
    *file = (struct text_file){0};
}
