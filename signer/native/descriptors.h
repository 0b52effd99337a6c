// Descriptors for the addon's functions of vsock: results are a number each, a descriptor, 0 or a negated errno, as
// libuv and Node give them. The caller that gets a descriptor owns it.
#ifndef STRONGROOM_DESCRIPTORS_H
#define STRONGROOM_DESCRIPTORS_H

#include <node_api.h>

#include <stdbool.h>

/** Export unixStream, unixListener, replaceDescriptor. */
bool export_descriptors(napi_env env, napi_value exports);

/** The result, or the negated errno of the call that gave it. */
int errno_or(int result);

/** Close on an error path, keeping the error. */
int give_up(int descriptor, int error);

/** What every function of vsock is on a system without vsock. */
napi_value unsupported(napi_env env, napi_callback_info info);

#endif
