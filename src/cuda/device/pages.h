/* SPDX-License-Identifier: Apache-2.0
 * How the talker's cache is cut, and how many lanes a frame takes: numbers alone, for plans that need no GPU. */
#ifndef CUDA_DEVICE_PAGES_H
#define CUDA_DEVICE_PAGES_H

enum {
    CUDA_PAGE = 16, /* positions of the talker's cache that are handed out together */
    /* Pages of a lane are spread over this many blocks: page p goes to block p % CUDA_SPLITS. */
    CUDA_SPLITS = 8,
    CUDA_MAX_SLOTS = 256, /* lanes of one frame; more are done in groups */
};

#endif
