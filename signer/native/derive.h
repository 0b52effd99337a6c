// Public keys of secret keys, several together, because they then share one inversion. The arithmetic is blst's and
// constant time in the secrets.
#ifndef STRONGROOM_DERIVE_H
#define STRONGROOM_DERIVE_H

#include <stddef.h>

#include "blst.h"

enum { PUBLIC_KEY_BYTES = 48 };

/** Public keys made together at most. */
enum { MAX_DERIVATIONS = 32 };

/** A public key to be made: secret × the generator of G1, compressed. */
struct derivation {
  const blst_scalar *secret; // 0 < secret < the group order
  unsigned char *public_key; // PUBLIC_KEY_BYTES, written
};

/** 1 to MAX_DERIVATIONS. */
void derive_public_keys(const struct derivation *derivations, size_t count);

#endif
