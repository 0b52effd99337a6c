// Shares of a key: Shamir's over the scalar field of BLS12-381, with Feldman's commitments, and the combination of
// partial signatures. Each sum and product is blst's. Nothing here signs, and nothing here keeps anything.
#ifndef STRONGROOM_SHARES_H
#define STRONGROOM_SHARES_H

#include <node_api.h>

#include <stdbool.h>

/** Participants of one key at most (api/distributed.ts): an identifier fits a byte, and a polynomial a page. */
enum { MAX_PARTICIPANTS = 32 };

bool export_shares(napi_env env, napi_value exports);

#endif
