// What the addon exports: its memory for secrets, what it asks of the system about the process, and the lists of the
// other files. Trusts nothing about its arguments; a wrong type or length throws. signer/native/load.ts has the types.
#include <node_api.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "core-calls.h"
#include "descriptors.h"
#include "memory.h"
#include "nsm.h"
#include "process.h"
#include "receipts.h"
#include "seccomp.h"
#include "shares.h"
#include "vsock-connect.h"
#include "vsock.h"

/** The largest buffer allocateSecret gives. */
#define MAX_SECRET_BUFFER_BYTES ((double)1024 * 1024)

static napi_value secret_memory(napi_env env, napi_callback_info info) {
  (void)info;
  const struct secret_memory_facts facts = secret_memory_facts();
  napi_value result, locked, unlocked;
  TRY(napi_create_object(env, &result));
  TRY(napi_create_double(env, (double)facts.locked_bytes, &locked));
  TRY(napi_create_double(env, (double)facts.unlocked_bytes, &unlocked));
  TRY(napi_set_named_property(env, result, "lockedBytes", locked));
  TRY(napi_set_named_property(env, result, "unlockedBytes", unlocked));
  return result;
}

static void free_secret(napi_env env, void *bytes, void *hint) {
  (void)env;
  (void)bytes;
  struct secret_region *region = hint;
  secret_region_close(region);
  free(region);
}

static napi_value allocate_secret(napi_env env, napi_callback_info info) {
  napi_value arguments[2], result;
  double length;
  enum lock_policy policy;
  REQUIRE(get_arguments(env, info, 2, arguments) && napi_get_value_double(env, arguments[0], &length) == napi_ok &&
              length >= 1 && length <= MAX_SECRET_BUFFER_BYTES && floor(length) == length &&
              get_lock_policy(env, arguments[1], &policy),
          "allocateSecret(length, policy): 1 to 1048576 bytes; off, best_effort or required");

  struct secret_region *region = malloc(sizeof *region);
  if (region == NULL) return throw_refusal(env, "no memory for a secret");
  if (!secret_region_open(region, (size_t)length, policy)) {
    free(region);
    return throw_refusal(env, "no memory for a secret, or it cannot be locked (RLIMIT_MEMLOCK)");
  }
  if (napi_create_external_arraybuffer(env, region->bytes, (size_t)length, free_secret, region, &result) != napi_ok) {
    free_secret(env, region->bytes, region);
    REQUIRE(false, "allocateSecret: this Node does not allow external buffers");
  }
  return result;
}

static napi_value turn_off_core_dumps(napi_env env, napi_callback_info info) {
  (void)info;
  if (!disable_core_dumps()) return throw_refusal(env, "core dumps cannot be turned off");
  return NULL;
}

static napi_value give_memory_back(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  return_freed_memory();
  return NULL;
}

/** Undefined when the system does not say. */
static napi_value kernel_clock(napi_env env, napi_callback_info info) {
  (void)info;
  struct kernel_clock clock;
  napi_value result, milliseconds, is_synchronised;
  if (!read_kernel_clock(&clock)) return NULL;
  REQUIRE(napi_create_object(env, &result) == napi_ok && napi_create_double(env, clock.milliseconds, &milliseconds) == napi_ok &&
              napi_get_boolean(env, clock.is_synchronised, &is_synchronised) == napi_ok &&
              napi_set_named_property(env, result, "milliseconds", milliseconds) == napi_ok &&
              napi_set_named_property(env, result, "isSynchronised", is_synchronised) == napi_ok,
          "kernelClock: no object");
  return result;
}

static napi_value install_filter(napi_env env, napi_callback_info info) {
  (void)info;
  const int error = install_system_call_filter();
  if (error == 0) return NULL;
  return throw_refusal(env, error == ENOTSUP ? "unsupported platform: the filter is for Linux on x86-64 and arm64" : strerror(error));
}

NAPI_MODULE_INIT() {
  static const struct named_function functions[] = {
      {"secretMemory", secret_memory},
      {"allocateSecret", allocate_secret},
      {"disableCoreDumps", turn_off_core_dumps},
      {"returnFreedMemory", give_memory_back},
      {"kernelClock", kernel_clock},
      {"installSystemCallFilter", install_filter},
  };
  REQUIRE(export_functions(env, exports, functions, sizeof functions / sizeof *functions) && export_core(env, exports) &&
              export_vsock(env, exports) && export_vsock_connect(env, exports) && export_descriptors(env, exports) &&
              export_nsm(env, exports) && export_receipts(env, exports) && export_shares(env, exports),
          "strongroom addon: the exports cannot be made");
  return exports;
}
