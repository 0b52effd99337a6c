// What every function that JavaScript calls needs: reading its arguments, throwing, and being found by its name.
// Nothing here trusts an argument: what has the wrong type or length is told apart from what was given.
#ifndef STRONGROOM_ARGUMENTS_H
#define STRONGROOM_ARGUMENTS_H

#include <node_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"

#define REQUIRE(condition, message)              \
  do {                                           \
    if (!(condition)) {                          \
      napi_throw_type_error(env, NULL, message); \
      return NULL;                               \
    }                                            \
  } while (0)

/** A call that fails only when the engine does (out of memory, shutting down). */
#define TRY(call) REQUIRE((call) == napi_ok, "strongroom addon: " #call " failed")

struct named_function {
  const char *name;
  napi_callback function;
};

/** Put functions on the object of exports. */
bool export_functions(napi_env env, napi_value exports, const struct named_function *functions, size_t count);

/** A refusal of the system, as opposed to a wrong argument. Always NULL. */
napi_value throw_refusal(napi_env env, const char *message);

/** Exactly `count` arguments, or false. */
bool get_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *arguments);

/** The bytes of a typed array of this type, or NULL. Lengths are in elements. */
void *get_elements(napi_env env, napi_value value, napi_typedarray_type wanted, size_t *length);

/** The bytes of a Uint8Array of exactly this length, or NULL. */
unsigned char *get_bytes(napi_env env, napi_value value, size_t length);

/** A whole number from 0 to `limit`. */
bool get_whole_number(napi_env env, napi_value value, uint32_t limit, uint32_t *number);

/** A file descriptor: a whole number that an `int` holds. */
bool get_descriptor(napi_env env, napi_value value, int *descriptor);

/** What `server.mlock` may say: off, best_effort or required. */
bool get_lock_policy(napi_env env, napi_value value, enum lock_policy *policy);

/** A number for JavaScript: a result, or a negated errno as libuv and Node give them. */
napi_value make_number(napi_env env, double number);

#endif
