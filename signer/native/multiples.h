// A table of a point's multiples, and the multiplication of that point by a secret scalar with it: for a root that many
// keys sign, less than half the price of blst's own multiplication. The additions are blst's; choosing what to add is
// ours: the same loads, the same additions and no branch, whatever the scalar (test/native/multiples.c holds it to
// that).
#ifndef STRONGROOM_MULTIPLES_H
#define STRONGROOM_MULTIPLES_H

#include "blst.h"

struct multiples;

/** About 1.4 ms and 160 KB. NULL when there is no memory. Release with free(). */
struct multiples *multiples_of(const blst_p2 *point);

/**
 * product = scalar × point. The scalar is below the group order; its copy here is wiped. The product is as secret as
 * the scalar until its third coordinate is gone (sign.c).
 */
void multiples_multiply(blst_p2 *product, const struct multiples *multiples, const blst_scalar *scalar);

#endif
