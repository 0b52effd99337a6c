// Connecting vsock sockets for signer/native/vsock.ts, without a thread for the wait.
#ifndef STRONGROOM_VSOCK_CONNECT_H
#define STRONGROOM_VSOCK_CONNECT_H

#include <node_api.h>

#include <stdbool.h>

/** Export vsockConnect, vsockCancel. */
bool export_vsock_connect(napi_env env, napi_value exports);

#endif
