/* SPDX-License-Identifier: Apache-2.0
 * Gathers a text in memory, and writes it as a file that appears when it is complete. */
#include "cli/text_file.h"

#include <stdlib.h>

#include "base/file.h"
#include "cli/report.h"

int text_file_open(struct text_file *file, const char *path)
{
    utter_error error = {0};
    *file = (struct text_file){0};
    utter_status status = file_out_open(&file->out, path, &error);
    if (status) {
        return fail_output(status, &error);
    }
    file->lines = open_memstream(&file->text, &file->bytes);
    if (!file->lines) {
        text_file_abort(file);
        return fail(2, "out of memory");
    }
    return 0;
}

int text_file_close(struct text_file *file)
{
    utter_error error = {0};
    bool complete = ferror(file->lines) == 0;
    complete = fclose(file->lines) == 0 && complete;
    file->lines = NULL;
    utter_status status =
        complete ? file_out_write(file->out, file->text, file->bytes, &error) : UTTER_E_MEMORY;
    if (status == UTTER_OK) {
        status = file_out_close(&file->out, &error);
    }
    text_file_abort(file);
    return status ? fail_output(status, &error) : 0;
}

void text_file_abort(struct text_file *file)
{
    if (file->lines) {
        fclose(file->lines);
    }
    file_out_abort(&file->out);
    free(file->text);
    *file = (struct text_file){0};
}
