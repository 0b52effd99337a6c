// Listening vsock sockets and CIDs for signer/native/vsock.ts: descriptors only, streams are Node's own.
#ifndef STRONGROOM_VSOCK_H
#define STRONGROOM_VSOCK_H

#include <node_api.h>

#include <stdbool.h>

/** Export vsockBind, vsockListen, vsockPeerCid, vsockLocalCid. */
bool export_vsock(napi_env env, napi_value exports);

#endif
