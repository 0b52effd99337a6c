// The ioctl of the Nitro Secure Module, for enclave/platform.ts.
#ifndef STRONGROOM_NSM_H
#define STRONGROOM_NSM_H

#include <node_api.h>

#include <stdbool.h>

/** Export nsmRequest. */
bool export_nsm(napi_env env, napi_value exports);

#endif
