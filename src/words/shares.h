/* SPDX-License-Identifier: Apache-2.0
 * Scores of a head -> the part of its attention that each place gets. */
#ifndef WORDS_SHARES_H
#define WORDS_SHARES_H

void shares_clear(float *shares, int n);
/* Adds `part` of what one head gives to each of n places, at least 1. */
void shares_add(float *shares, const float *scores, int n, float part);

#endif
