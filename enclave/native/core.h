// The signing core for enclave/signing/bls/native.ts: keys in, batches of signatures out.
#ifndef STRONGROOM_CORE_H
#define STRONGROOM_CORE_H

#include <node_api.h>

#include <stdbool.h>

/** Export openKeyring, addKey, removeKey, wipeKeyring, closeKeyring and signBatch. */
bool export_core(napi_env env, napi_value exports);

#endif
