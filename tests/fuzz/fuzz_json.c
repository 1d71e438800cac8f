/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as JSON: a status, a reason in one line, and getters that stay within their ranges. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Asks the object for each of its keys as everything. */
static void ask(const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        utter_error error = {.text = "-"};
        struct json_fields f = {.object = object, .where = "fuzz", .error = &error};
        int64_t number = json_need_int(&f, key, -5, 1000);
        double real = json_take_number(&f, key, -0.5, 2.5, 1);
        if (number < -5 || number > 1000 || !(real >= -0.5 && real <= 2.5)) {
            abort();
        }
        json_take_bool(&f, key, false);
        if (!json_need_string(&f, key)) {
            abort();
        }
        ask(json_take_object(&f, key));
        json_need_array(&f, key);
        if (f.status == UTTER_OK || error.text[0] != 'f') { /* no value is both a string and a number */
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *root;
    utter_error error = {.text = ""};
    utter_status status = json_text(&root, (const char *)data, bytes, JSON_SMALL, "fuzz", &error);
    if ((status == UTTER_OK) != (root != NULL) ||
        (!root && (!error.text[0] || strchr(error.text, '\n')))) {
        abort();
    }
    if (json_is_object(root)) {
        ask(root);
    }
    json_decref(root);
    return 0;
}
