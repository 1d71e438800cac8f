/* SPDX-License-Identifier: Apache-2.0
 * Softmax over the places of the text alone. */
#include "words/shares.h"

#include <math.h>

#include "base/minmax.h"

void shares_clear(float *shares, int n)
{
    for (int i = 0; i < n; i++) {
        shares[i] = 0;
    }
}

void shares_add(float *shares, const float *scores, int n, float part)
{
    float most = scores[0], sum = 0;
    for (int i = 1; i < n; i++) {
        most = max(most, scores[i]);
    }
    for (int i = 0; i < n; i++) {
        sum += expf(scores[i] - most);
    }
    for (int i = 0; i < n; i++) {
        shares[i] += part * expf(scores[i] - most) / sum;
    }
}
