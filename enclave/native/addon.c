// The signing core's face to JavaScript, and the list of all that the addon exports: arguments in, results and errors out, and the
// batches on libuv's pool. Trusts nothing about its arguments; a wrong type or length throws. Secrets cross this file once, inward, and
// never come back. enclave/native/load.ts has the types.
#include <node_api.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "keyring.h"
#include "memory.h"
#include "nsm.h"
#include "process.h"
#include "seccomp.h"
#include "sign.h"
#include "vsock.h"

/** Jobs in one batch: what a priority job may have to wait for. */
enum { MAX_BATCH_JOBS = 16 };
/** The largest buffer allocateSecret gives. */
#define MAX_SECRET_BUFFER_BYTES ((double)1024 * 1024)

/** Distinguishes our external from any other that might be passed in its place. */
static const napi_type_tag KEYRING_TAG = {0x5c1e0a7d1f3b4d6aULL, 0x9b0f6b7c2e8d4a11ULL};

/** A keyring as JavaScript holds it. Batches under way keep it alive; so do its external and an explicit close. */
struct core {
  struct keyring *keyring;
  struct point_cache *cache;
  uint32_t batches;   // under way
  bool closed;        // close was called: the keyring goes with the last batch
  bool collected;     // JavaScript let go of it: this struct goes with the last batch
};

struct job {
  const blst_scalar *secret; // NULL: the handle was stale, the signature stays zero
  uint32_t slot;
  unsigned char root[ROOT_BYTES];
};

struct batch {
  struct core *core;
  napi_async_work work;
  napi_deferred deferred;
  size_t count;
  struct job jobs[MAX_BATCH_JOBS];
  unsigned char signatures[MAX_BATCH_JOBS * SIGNATURE_BYTES];
};

// ---------------------------------------------------------------------------------------------------------------- helpers

static bool get_policy(napi_env env, napi_value value, enum lock_policy *policy) {
  static const char *const names[] = {[LOCK_OFF] = "off", [LOCK_BEST_EFFORT] = "best_effort", [LOCK_REQUIRED] = "required"};
  char name[16];
  size_t length;
  if (napi_get_value_string_utf8(env, value, name, sizeof name, &length) != napi_ok) return false;
  for (int candidate = LOCK_OFF; candidate <= LOCK_REQUIRED; candidate++) {
    if (strcmp(name, names[candidate]) != 0) continue;
    *policy = (enum lock_policy)candidate;
    return true;
  }
  return false;
}

static struct core *get_core(napi_env env, napi_value value) {
  bool is_ours = false;
  void *core = NULL;
  if (napi_check_object_type_tag(env, value, &KEYRING_TAG, &is_ours) != napi_ok || !is_ours) return NULL;
  return napi_get_value_external(env, value, &core) == napi_ok ? core : NULL;
}

/** What is not a whole number below 2^53 becomes 0, which names no key. */
static uint64_t handle_from_number(double number) {
  return number >= 1 && number < 9007199254740992.0 && floor(number) == number ? (uint64_t)number : 0;
}

// ---------------------------------------------------------------------------------------------------------------- keyring

/** Free what nobody needs any more. The keyring goes first: its memory counts against RLIMIT_MEMLOCK. */
static void settle_core(struct core *core) {
  if (core->batches > 0) return;
  if ((core->closed || core->collected) && core->keyring != NULL) {
    keyring_close(core->keyring);
    point_cache_close(core->cache);
    core->keyring = NULL;
  }
  if (core->collected) free(core);
}

static void collect_core(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  struct core *core = data;
  core->collected = true;
  settle_core(core);
}

static napi_value open_keyring(napi_env env, napi_callback_info info) {
  napi_value arguments[2], external;
  enum lock_policy policy;
  bool makes_tables;
  REQUIRE(get_arguments(env, info, 2, arguments) && get_policy(env, arguments[0], &policy) &&
              napi_get_value_bool(env, arguments[1], &makes_tables) == napi_ok,
          "openKeyring(policy, rootTables): policy is off, best_effort or required; rootTables is a boolean");

  struct core *core = calloc(1, sizeof *core);
  if (core == NULL) return throw_refusal(env, "no memory for a keyring");
  core->cache = point_cache_open(makes_tables);
  core->keyring = core->cache == NULL ? NULL : keyring_open(policy);
  if (core->keyring == NULL) {
    if (core->cache != NULL) point_cache_close(core->cache);
    free(core);
    return throw_refusal(env, "no memory for keys, or it cannot be locked (RLIMIT_MEMLOCK)");
  }
  if (napi_create_external(env, core, collect_core, NULL, &external) != napi_ok) {
    collect_core(env, core, NULL);
    REQUIRE(false, "no external");
  }
  TRY(napi_type_tag_object(env, external, &KEYRING_TAG));
  return external;
}

static napi_value add_key(napi_env env, napi_callback_info info) {
  napi_value arguments[3], result;
  REQUIRE(get_arguments(env, info, 3, arguments), "addKey(keyring, secretKey, publicKey)");
  struct core *core = get_core(env, arguments[0]);
  const unsigned char *secret_key = get_bytes(env, arguments[1], SECRET_KEY_BYTES);
  unsigned char *public_key = get_bytes(env, arguments[2], PUBLIC_KEY_BYTES);
  REQUIRE(core != NULL && !core->closed, "addKey: not an open keyring");
  REQUIRE(secret_key != NULL && public_key != NULL, "addKey: a secret key of 32 bytes, room for a public key of 48");

  uint64_t handle = 0;
  switch (keyring_add(core->keyring, secret_key, &handle, public_key)) {
    case KEYRING_ADDED:
      TRY(napi_create_double(env, (double)handle, &result));
      return result;
    case KEYRING_NOT_A_SECRET_KEY:
      napi_throw_range_error(env, NULL, "the secret key is zero or not below the group order");
      return NULL;
    case KEYRING_NO_MEMORY:
      break;
  }
  return throw_refusal(env, "no memory for another key, or it cannot be locked (RLIMIT_MEMLOCK)");
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

static napi_value wipe_keyring(napi_env env, napi_callback_info info) {
  napi_value argument;
  REQUIRE(get_arguments(env, info, 1, &argument), "wipeKeyring(keyring)");
  struct core *core = get_core(env, argument);
  REQUIRE(core != NULL, "wipeKeyring: not a keyring");
  if (!core->closed) keyring_wipe(core->keyring);
  return NULL;
}

static napi_value close_keyring(napi_env env, napi_callback_info info) {
  napi_value argument;
  REQUIRE(get_arguments(env, info, 1, &argument), "closeKeyring(keyring)");
  struct core *core = get_core(env, argument);
  REQUIRE(core != NULL, "closeKeyring: not a keyring");
  if (!core->closed) keyring_wipe(core->keyring);
  core->closed = true;
  settle_core(core);
  return NULL;
}

// ---------------------------------------------------------------------------------------------------------------- batches

/** On a thread of libuv's pool. Reads pinned secrets in place; nothing of JavaScript may be touched here. */
static void execute_batch(napi_env env, void *data) {
  (void)env;
  struct batch *batch = data;
  for (size_t index = 0; index < batch->count; index++) {
    const struct job *job = &batch->jobs[index];
    if (job->secret == NULL) continue;
    sign_root(batch->core->cache, job->secret, job->root, &batch->signatures[index * SIGNATURE_BYTES]);
  }
}

static void unpin_batch(struct batch *batch) {
  for (size_t index = 0; index < batch->count; index++) {
    if (batch->jobs[index].secret != NULL) keyring_unpin(batch->core->keyring, batch->jobs[index].slot);
  }
  batch->core->batches -= 1;
  settle_core(batch->core);
}

static void complete_batch(napi_env env, napi_status status, void *data) {
  struct batch *batch = data;
  napi_value signatures, message, error;
  void *bytes;
  const size_t length = batch->count * SIGNATURE_BYTES;
  unpin_batch(batch);
  if (status == napi_ok && napi_create_arraybuffer(env, length, &bytes, &signatures) == napi_ok) {
    memcpy(bytes, batch->signatures, length);
    napi_resolve_deferred(env, batch->deferred, signatures);
  } else if (napi_create_string_utf8(env, "the batch was not run", NAPI_AUTO_LENGTH, &message) == napi_ok &&
             napi_create_error(env, NULL, message, &error) == napi_ok) {
    napi_reject_deferred(env, batch->deferred, error);
  }
  napi_delete_async_work(env, batch->work);
  free(batch);
}

static napi_status start_batch(napi_env env, struct batch *batch, napi_value *promise) {
  napi_value name;
  napi_status status = napi_create_string_utf8(env, "strongroom.signBatch", NAPI_AUTO_LENGTH, &name);
  if (status == napi_ok) status = napi_create_promise(env, &batch->deferred, promise);
  if (status == napi_ok) status = napi_create_async_work(env, NULL, name, execute_batch, complete_batch, batch, &batch->work);
  if (status == napi_ok) status = napi_queue_async_work(env, batch->work);
  return status;
}

/** One promise of `count × 96` bytes. A job whose handle is stale gets zeros: no compressed point begins with a zero byte. */
static napi_value sign_batch(napi_env env, napi_callback_info info) {
  napi_value arguments[3], promise;
  size_t count = 0;
  REQUIRE(get_arguments(env, info, 3, arguments), "signBatch(keyring, handles, roots)");
  struct core *core = get_core(env, arguments[0]);
  const double *handles = get_elements(env, arguments[1], napi_float64_array, &count);
  REQUIRE(core != NULL && !core->closed, "signBatch: not an open keyring");
  REQUIRE(handles != NULL && count >= 1 && count <= MAX_BATCH_JOBS, "signBatch: 1 to 16 handles");
  const unsigned char *roots = get_bytes(env, arguments[2], count * ROOT_BYTES);
  REQUIRE(roots != NULL, "signBatch: one root of 32 bytes for each handle");

  struct batch *batch = calloc(1, sizeof *batch);
  if (batch == NULL) return throw_refusal(env, "no memory for a batch");
  batch->core = core;
  batch->count = count;
  core->batches += 1;
  for (size_t index = 0; index < count; index++) {
    struct job *job = &batch->jobs[index];
    job->secret = keyring_pin(core->keyring, handle_from_number(handles[index]), &job->slot);
    memcpy(job->root, roots + index * ROOT_BYTES, ROOT_BYTES);
  }
  if (start_batch(env, batch, &promise) != napi_ok) {
    unpin_batch(batch);
    free(batch);
    REQUIRE(false, "signBatch: the batch cannot be queued");
  }
  return promise;
}

// ---------------------------------------------------------------------------------------------------------------- memory, process

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
              get_policy(env, arguments[1], &policy),
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

static napi_value install_filter(napi_env env, napi_callback_info info) {
  (void)info;
  const int error = install_system_call_filter();
  if (error == 0) return NULL;
  return throw_refusal(env, error == ENOTSUP ? "unsupported platform: the filter is for Linux on x86-64 and arm64" : strerror(error));
}

NAPI_MODULE_INIT() {
  static const struct named_function functions[] = {
      {"openKeyring", open_keyring},
      {"addKey", add_key},
      {"removeKey", remove_key},
      {"wipeKeyring", wipe_keyring},
      {"closeKeyring", close_keyring},
      {"signBatch", sign_batch},
      {"secretMemory", secret_memory},
      {"allocateSecret", allocate_secret},
      {"disableCoreDumps", turn_off_core_dumps},
      {"installSystemCallFilter", install_filter},
  };
  REQUIRE(export_functions(env, exports, functions, sizeof functions / sizeof *functions) && export_vsock(env, exports) &&
              export_nsm(env, exports),
          "strongroom addon: the exports cannot be made");
  return exports;
}
