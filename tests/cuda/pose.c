/* SPDX-License-Identifier: Apache-2.0
 * Linked into the checks of the GPU backend in front of cuda_device_open: CUDA_AS=CARD in the environment, a card of
 * cuda/device/cards.h, takes from the GPU that is there what the card has not. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda/device/cards.h"
#include "cuda/device/device.h"

utter_status __real_cuda_device_open(struct cuda_device *device, int index, utter_error *error);
utter_status __wrap_cuda_device_open(struct cuda_device *device, int index, utter_error *error);

utter_status __wrap_cuda_device_open(struct cuda_device *device, int index, utter_error *error)
{
    const char *name = getenv("CUDA_AS");
    if (!name || !*name) {
        return __real_cuda_device_open(device, index, error);
    }
    const struct cuda_card *card = cuda_card_find(name);
    if (!card) {
        fprintf(stderr, "CUDA_AS: there is no %s (src/cuda/device/cards.h)\n", name);
        exit(2);
    }
    const struct cuda_arch as = cuda_card_arch(card);
    return cuda_device_open_as(device, index, &as, error);
}
