/* SPDX-License-Identifier: Apache-2.0
 * Node's door to the library (N-API): say(text) -> Float32Array of 24,000 samples a second. See say.mjs.
 * cc -shared -fPIC -IDIR_OF_NODE_API node.c -lutter -o utter.node */
#include <node_api.h>
#include <stdlib.h>
#include <string.h>

#include "utter.h"

struct sound {
    float *pcm;
    size_t n, capacity;
};

static bool take(void *user, const float *pcm, size_t n)
{
    struct sound *sound = user;
    if (sound->n + n > sound->capacity) {
        size_t capacity = 2 * sound->capacity + n;
        float *grown = realloc(sound->pcm, capacity * sizeof *grown);
        if (!grown) {
            return false;
        }
        sound->pcm = grown;
        sound->capacity = capacity;
    }
    memcpy(sound->pcm + sound->n, pcm, n * sizeof *pcm);
    sound->n += n;
    return true;
}

/* The text of the first argument, which the caller frees; NULL after an exception. */
static char *text_of(napi_env env, napi_callback_info info)
{
    napi_value argument;
    size_t n_arguments = 1, n;
    char *text = NULL;
    if (napi_get_cb_info(env, info, &n_arguments, &argument, NULL, NULL) != napi_ok ||
        n_arguments < 1 || napi_get_value_string_utf8(env, argument, NULL, 0, &n) != napi_ok ||
        !(text = malloc(n + 1))) {
        napi_throw_type_error(env, NULL, "say wants a text");
        return NULL;
    }
    napi_get_value_string_utf8(env, argument, text, n + 1, &n);
    return text;
}

static napi_value say(napi_env env, napi_callback_info info)
{
    struct sound sound = {0};
    utter_model *model = NULL;
    utter_error error = {0};
    napi_value buffer, array = NULL;
    void *data;
    char *text = text_of(env, info);
    if (!text) {
        return NULL;
    }
    /* No path: the voice that comes with the library. */
    if (utter_model_open(&model, NULL, NULL, &error) ||
        utter_say(model, text, NULL, take, &sound, &error)) {
        napi_throw_error(env, NULL, error.text);
    } else if (napi_create_arraybuffer(env, sound.n * sizeof *sound.pcm, &data, &buffer) == napi_ok) {
        memcpy(data, sound.pcm, sound.n * sizeof *sound.pcm);
        napi_create_typedarray(env, napi_float32_array, sound.n, buffer, 0, &array);
    }
    utter_model_close(&model);
    free(sound.pcm);
    free(text);
    return array;
}

NAPI_MODULE_INIT()
{
    napi_value function;
    napi_create_function(env, "say", NAPI_AUTO_LENGTH, say, NULL, &function);
    napi_set_named_property(env, exports, "say", function);
    return exports;
}
