/* SPDX-License-Identifier: Apache-2.0
 * The library as the worker in here is linked to it: a model that takes the time of a real one and makes sound that
 * says whose it is. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What steps cost, in the order of lanes; between two points a line. */
struct model_point {
    int lanes;
    double ms;
};

struct model_shape {
    const char *name;
    int lanes;                    /* that it has where nobody says how many */
    struct model_point points[8]; /* the first of one lane; zeros behind the last */
    double prompt_ms, byte_ms;    /* a prompt takes so much, and so much for each byte of its text */
    double open_s;
};

extern const struct model_shape model_shapes[];
enum { MODEL_SLOW = 1, MODEL_H200_8_BITS = 2, MODEL_H200 = 3, MODEL_SHAPES = 6 };

/* What the next models are like, and how they fail. */
struct model_plan {
    const struct model_shape *shape;
    int lanes; /* 0: as the shape has them */
    int sample_rate, frame_samples;
    double bytes_a_second; /* of text, in speech: of all the same; 0: about 14 */
    double unsteady;       /* of a step's time: how far it strays */
    double fails;          /* of speeches: they end with an error somewhere */
    double empty;          /* of speeches: they end before their first sound */
    double does_not_start; /* of attempts: there is no process */
    double does_not_open;  /* of attempts */
    double breaks;         /* of steps: the device is lost */
    bool opens_for_ever;
};
extern struct model_plan model_plan;

/* A text that says whose it is: "@ID " and so many bytes in all. */
void model_text(char *out, size_t size, uint32_t id, size_t bytes);
/* Samples of all of a text of so many bytes; and which one sample is. */
uint64_t model_samples(uint32_t id, size_t text_bytes, int max_frames);
int16_t model_sample(uint32_t id, uint64_t at);
/* That one and those behind it, MODEL_BLOCK in all; and as the library gives them. */
enum { MODEL_BLOCK = 4096 };
const int16_t *model_sound(uint32_t id, uint64_t at);
const float *model_pcm(uint32_t id, uint64_t at);
bool model_fails(uint32_t id); /* the model does not say this one to its end */
/* Speeches on lanes of models that are open. */
int model_open_speeches(void);
/* How many times longer than a frame is heard it takes to make one for each of so many lanes (0: for all). */
double model_slowness(int lanes);
/* Seconds of sound that lanes 1, 2, ... give in a second, the most of all widths. */
double model_most_throughput(const struct model_shape *shape);

#endif
