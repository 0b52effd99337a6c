// BLS signatures of 32-byte roots under the Ethereum suite. A root is hashed to the curve once, and its point is shared
// among the keys that sign it: hashing is half of a signature, and all attesters of a slot sign one root. The
// arithmetic is blst's, but for the multiplication with a table of a root's multiples, which is ours (multiples.c).
#ifndef STRONGROOM_SIGN_H
#define STRONGROOM_SIGN_H

#include <stdbool.h>
#include <stddef.h>

#include "blst.h"

enum { ROOT_BYTES = 32, SIGNATURE_BYTES = 96 };

/** Points of the roots signed last. Bounded; may be used by several threads at once. Holds nothing secret. */
struct point_cache;

/** @param makes_tables whether a root that many keys sign gets a table of its multiples (multiples.h) */
struct point_cache *point_cache_open(bool makes_tables);
void point_cache_close(struct point_cache *cache);

/** Signatures made together at most. */
enum { MAX_SIGNINGS = 32 };

/** A signature to be made: hash_to_curve(root) × secret, compressed. */
struct signing {
  const blst_scalar *secret; // 0 < secret < the group order
  const unsigned char *root; // ROOT_BYTES
  unsigned char *signature;  // SIGNATURE_BYTES, written
};

/** 1 to MAX_SIGNINGS, which share one inversion. Constant time in the secrets (blst_sign_pk2_in_g1, multiples.h). */
void sign_roots(struct point_cache *cache, const struct signing *signings, size_t count);

#endif
