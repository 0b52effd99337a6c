// See core-calls.h. Arguments in, results and errors out. Trusts nothing about its arguments; a wrong type or length
// throws. Secrets cross this file once, inward.
#include "core-calls.h"

#include "arguments.h"
#include "core.h"
#include "derive.h"
#include "keyring.h"
#include "sign.h"

/** Keys taken in one call: what the JavaScript thread does meanwhile is nothing else. */
enum { MAX_KEYS_AT_ONCE = 1024 };
enum { MAX_THREADS = 256 };

/** Distinguishes our external from any other that might be passed in its place. */
static const napi_type_tag KEYRING_TAG = {0x5c1e0a7d1f3b4d6aULL, 0x9b0f6b7c2e8d4a11ULL};

#define REQUIRE_OPEN(core, function) REQUIRE((core) != NULL && !(core)->closed, function ": not an open keyring")
#define REQUIRE_BATCH(handles, count, function) \
  REQUIRE((handles) != NULL && (count) >= 1 && (count) <= MAX_BATCH_JOBS, function ": 1 to 32 handles")

static struct core *get_core(napi_env env, napi_value value) {
  bool is_ours = false;
  void *core = NULL;
  if (napi_check_object_type_tag(env, value, &KEYRING_TAG, &is_ours) != napi_ok || !is_ours) return NULL;
  return napi_get_value_external(env, value, &core) == napi_ok ? core : NULL;
}

static napi_value sign_batch(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  size_t count = 0;
  REQUIRE(get_arguments(env, info, 3, arguments), "signBatch(keyring, handles, roots)");
  struct core *core = get_core(env, arguments[0]);
  const double *handles = get_elements(env, arguments[1], napi_float64_array, &count);
  REQUIRE_OPEN(core, "signBatch");
  REQUIRE_BATCH(handles, count, "signBatch");
  const unsigned char *roots = get_bytes(env, arguments[2], count * ROOT_BYTES);
  REQUIRE(roots != NULL, "signBatch: one root of 32 bytes for each handle");
  return begin_batch(env, core, handles, count, roots, ROOT_BYTES, false);
}

static napi_value sign_group(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  size_t count = 0;
  REQUIRE(get_arguments(env, info, 3, arguments), "signGroup(keyring, handles, root)");
  struct core *core = get_core(env, arguments[0]);
  const double *handles = get_elements(env, arguments[1], napi_float64_array, &count);
  const unsigned char *root = get_bytes(env, arguments[2], ROOT_BYTES);
  REQUIRE_OPEN(core, "signGroup");
  REQUIRE_BATCH(handles, count, "signGroup");
  REQUIRE(root != NULL, "signGroup: one root of 32 bytes");
  return begin_batch(env, core, handles, count, root, 0, true);
}

static napi_value public_keys(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  size_t count = 0;
  REQUIRE(get_arguments(env, info, 2, arguments), "publicKeys(keyring, handles)");
  struct core *core = get_core(env, arguments[0]);
  const double *handles = get_elements(env, arguments[1], napi_float64_array, &count);
  REQUIRE_OPEN(core, "publicKeys");
  REQUIRE_BATCH(handles, count, "publicKeys");
  return begin_batch(env, core, handles, count, NULL, 0, true);
}

static napi_value open_keyring(napi_env env, napi_callback_info info) {
  napi_value arguments[3], external;
  enum lock_policy policy;
  bool makes_tables;
  uint32_t threads;
  REQUIRE(get_arguments(env, info, 3, arguments) && get_lock_policy(env, arguments[0], &policy) &&
              napi_get_value_bool(env, arguments[1], &makes_tables) == napi_ok &&
              get_whole_number(env, arguments[2], MAX_THREADS, &threads) && threads >= 1,
          "openKeyring(policy, rootTables, threads): off, best_effort or required; a boolean; 1 to 256");

  struct core *core = make_core(env, policy, makes_tables, threads);
  if (core == NULL) return throw_refusal(env, "no memory or threads for keys, or memory cannot be locked (RLIMIT_MEMLOCK)");
  if (napi_create_external(env, core, collect_core, NULL, &external) != napi_ok) {
    collect_core(env, core, NULL);
    REQUIRE(false, "no external");
  }
  TRY(napi_type_tag_object(env, external, &KEYRING_TAG));
  return external;
}

/** The public key of a handle that was given just now. */
static void derive_at_once(struct core *core, uint64_t handle, unsigned char public_key[PUBLIC_KEY_BYTES]) {
  uint32_t slot;
  const blst_scalar *secret = keyring_pin(core->keyring, handle, &slot);
  derive_public_keys(&(struct derivation){secret, public_key}, 1);
  keyring_unpin(core->keyring, slot);
}

static napi_value throw_no_memory_for_keys(napi_env env) {
  return throw_refusal(env, "no memory for another key, or it cannot be locked (RLIMIT_MEMLOCK)");
}

static napi_value add_key(napi_env env, napi_callback_info info) {
  napi_value arguments[3], result;
  REQUIRE(get_arguments(env, info, 3, arguments), "addKey(keyring, secretKey, publicKey)");
  struct core *core = get_core(env, arguments[0]);
  const unsigned char *secret_key = get_bytes(env, arguments[1], SECRET_KEY_BYTES);
  unsigned char *public_key = get_bytes(env, arguments[2], PUBLIC_KEY_BYTES);
  REQUIRE_OPEN(core, "addKey");
  REQUIRE(secret_key != NULL && public_key != NULL, "addKey: a secret key of 32 bytes, room for a public key of 48");

  uint64_t handle = 0;
  switch (keyring_add(core->keyring, secret_key, &handle)) {
    case KEYRING_ADDED:
      derive_at_once(core, handle, public_key);
      TRY(napi_create_double(env, (double)handle, &result));
      return result;
    case KEYRING_NOT_A_SECRET_KEY:
      napi_throw_range_error(env, NULL, "the secret key is zero or not below the group order");
      return NULL;
    case KEYRING_NO_MEMORY:
      break;
  }
  return throw_no_memory_for_keys(env);
}

/**
 * Takes all of the keys or none: when memory ends on the way, the caller would have no handle of those taken before.
 */
static napi_value take_keys(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  size_t count = 0;
  REQUIRE(get_arguments(env, info, 3, arguments), "takeKeys(keyring, secretKeys, handles)");
  struct core *core = get_core(env, arguments[0]);
  double *handles = get_elements(env, arguments[2], napi_float64_array, &count);
  REQUIRE_OPEN(core, "takeKeys");
  REQUIRE(handles != NULL && count >= 1 && count <= MAX_KEYS_AT_ONCE, "takeKeys: room for 1 to 1024 handles");
  const unsigned char *secret_keys = get_bytes(env, arguments[1], count * SECRET_KEY_BYTES);
  REQUIRE(secret_keys != NULL, "takeKeys: a secret key of 32 bytes for each handle");

  for (size_t index = 0; index < count; index++) {
    uint64_t handle = 0; // names no key: what it stays for one that is refused
    if (keyring_add(core->keyring, secret_keys + index * SECRET_KEY_BYTES, &handle) == KEYRING_NO_MEMORY) {
      while (index-- > 0) keyring_remove(core->keyring, (uint64_t)handles[index]);
      return throw_no_memory_for_keys(env);
    }
    handles[index] = (double)handle;
  }
  return NULL;
}

static napi_value remove_key(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  double handle;
  REQUIRE(get_arguments(env, info, 2, arguments), "removeKey(keyring, handle)");
  struct core *core = get_core(env, arguments[0]);
  REQUIRE(core != NULL && napi_get_value_double(env, arguments[1], &handle) == napi_ok, "removeKey: keyring and number");
  if (!core->closed) keyring_remove(core->keyring, handle_from_number(handle));
  return NULL;
}

/** The core of a function that takes nothing else, its keys wiped; NULL when it was given something else. */
static struct core *get_wiped_core(napi_env env, napi_callback_info info) {
  napi_value argument;
  struct core *core = get_arguments(env, info, 1, &argument) ? get_core(env, argument) : NULL;
  if (core != NULL && !core->closed) keyring_wipe(core->keyring);
  return core;
}

static napi_value wipe_keyring(napi_env env, napi_callback_info info) {
  REQUIRE(get_wiped_core(env, info) != NULL, "wipeKeyring(keyring): not a keyring");
  return NULL;
}

static napi_value close_keyring(napi_env env, napi_callback_info info) {
  struct core *core = get_wiped_core(env, info);
  REQUIRE(core != NULL, "closeKeyring(keyring): not a keyring");
  core->closed = true;
  settle_core(core);
  return NULL;
}

static napi_value unlocked_keys(napi_env env, napi_callback_info info) {
  napi_value argument, result;
  REQUIRE(get_arguments(env, info, 1, &argument), "unlockedKeys(keyring)");
  struct core *core = get_core(env, argument);
  REQUIRE(core != NULL, "unlockedKeys(keyring): not a keyring");
  TRY(napi_create_uint32(env, core->keyring == NULL ? 0 : keyring_unlocked_keys(core->keyring), &result));
  return result;
}

bool export_core(napi_env env, napi_value exports) {
  static const struct named_function functions[] = {
      {"openKeyring", open_keyring},
      {"addKey", add_key},
      {"takeKeys", take_keys},
      {"publicKeys", public_keys},
      {"removeKey", remove_key},
      {"unlockedKeys", unlocked_keys},
      {"wipeKeyring", wipe_keyring},
      {"closeKeyring", close_keyring},
      {"signBatch", sign_batch},
      {"signGroup", sign_group},
  };
  return export_functions(env, exports, functions, sizeof functions / sizeof *functions);
}
