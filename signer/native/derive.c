// See derive.h.
#include "derive.h"

#include "memory.h"

void derive_public_keys(const struct derivation *derivations, size_t count) {
  blst_p1 products[MAX_DERIVATIONS];
  const blst_p1 *const first[] = {products, NULL}; // the others follow it
  blst_p1_affine affine[MAX_DERIVATIONS];
  for (size_t index = 0; index < count; index++) blst_sk_to_pk_in_g1(&products[index], derivations[index].secret);
  // No product is the point at infinity, which would spoil the others: a secret is not zero, and the group's order is
  // prime.
  blst_p1s_to_affine(affine, first, count);
  wipe(products, count * sizeof *products); // their third coordinates tell of the secrets
  for (size_t index = 0; index < count; index++) blst_p1_affine_compress(derivations[index].public_key, &affine[index]);
}
