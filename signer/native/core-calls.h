// The signing core for signer/bls/native.ts: keys in, batches of signatures and of public keys out.
#ifndef STRONGROOM_CORE_CALLS_H
#define STRONGROOM_CORE_CALLS_H

#include <node_api.h>

#include <stdbool.h>

/** Export the functions that take a keyring, as load.ts describes them. */
bool export_core(napi_env env, napi_value exports);

#endif
