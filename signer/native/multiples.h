// A table of a point's multiples, and the multiplication of that point by secret scalars with it: for a root that many
// keys sign, a quarter to a third of the price of blst's own multiplication. The arithmetic in the field is blst's, and
// its inversion is constant in time; the digits, the choice of what to add, and the sum of two points of which nothing
// is special are ours: the same loads, the same operations and no branch, whatever the scalars (test/native/multiples.c
// holds them to that).
#ifndef STRONGROOM_MULTIPLES_H
#define STRONGROOM_MULTIPLES_H

#include <stddef.h>

#include "blst.h"

struct multiples;

/** About 0.7 ms and 155 KB. NULL when there is no memory, or the point is infinity. Release with free(). */
struct multiples *multiples_of(const blst_p2 *point);

/** Scalars that are multiplied together at most. */
enum { MAX_SCALARS = 32 };

/**
 * products[i] = scalars[i] × point, for 1 to MAX_SCALARS. The scalars are above 0 and below the group order; what is
 * made of them here is wiped. The products are as secret as the scalars until their third coordinates are gone
 * (sign.c).
 */
void multiples_multiply(blst_p2 products[], const struct multiples *multiples, const blst_scalar *const scalars[],
                        size_t count);

#endif
