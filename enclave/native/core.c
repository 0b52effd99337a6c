// See core.h. Arguments in, results and errors out, and the life of a core: its keys, its threads and the batches under
// way. Trusts nothing about its arguments; a wrong type or length throws. Secrets cross this file once, inward, and
// never come back.
#include "core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "derive.h"
#include "keyring.h"
#include "sign.h"
#include "threads.h"

/** Jobs in one batch. */
enum { MAX_BATCH_JOBS = MAX_SIGNINGS };
_Static_assert((int)MAX_DERIVATIONS >= (int)MAX_BATCH_JOBS, "public keys of a batch are made together");
/** Keys taken in one call: what the JavaScript thread does meanwhile is nothing else. */
enum { MAX_KEYS_AT_ONCE = 1024 };
enum { MAX_THREADS = 256 };
/**
 * How far the threads that sign for groups stand back: the main thread, the database's and whoever signs a message that
 * came alone get a core at once, and beside a busy neighbour the groups still get a quarter of one.
 */
enum { GROUP_NICE = 5 };

/** Distinguishes our external from any other that might be passed in its place. */
static const napi_type_tag KEYRING_TAG = {0x5c1e0a7d1f3b4d6aULL, 0x9b0f6b7c2e8d4a11ULL};

/** A keyring as JavaScript holds it, and the threads that sign with it. */
struct core {
  struct keyring *keyring; // NULL once it is closed for good
  struct point_cache *cache;
  struct threads *threads;            // NULL once they have ended
  struct threads *group_threads;      // as many, for jobs that came in groups and for public keys; NULL as well then
  napi_threadsafe_function on_signed; // gives batches that are done to the JavaScript thread
  napi_env env;
  uint32_t batches; // under way; they keep all of this
  bool closed;      // close was called, or the JavaScript thread ends: the keyring goes with the last batch
  bool collected;   // JavaScript let go of it: this struct goes with the last batch
};

struct job {
  const blst_scalar *secret; // NULL: the handle was stale, the result stays zero
  uint32_t slot;
  unsigned char root[ROOT_BYTES];
};

struct batch {
  struct task task; // first: as the threads know it
  struct core *core;
  napi_deferred deferred;
  size_t count;
  size_t result_bytes; // of each job: SIGNATURE_BYTES, or PUBLIC_KEY_BYTES, which needs no root
  struct job jobs[MAX_BATCH_JOBS];
  unsigned char results[MAX_BATCH_JOBS * SIGNATURE_BYTES];
};

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

// ---------------------------------------------------------------------------------------------------------------- life

static void end_with_environment(void *data);

/** The keyring goes first: its memory counts against RLIMIT_MEMLOCK. */
static void close_core(struct core *core) {
  if (core->keyring != NULL) keyring_close(core->keyring);
  core->keyring = NULL;
  if (core->cache != NULL) point_cache_close(core->cache);
  core->cache = NULL;
  if (core->threads == NULL) return;
  (void)threads_end(core->threads); // with no batch under way nothing is left of theirs
  (void)threads_end(core->group_threads);
  core->threads = core->group_threads = NULL;
  (void)napi_remove_env_cleanup_hook(core->env, end_with_environment, core);
  (void)napi_release_threadsafe_function(core->on_signed, napi_tsfn_release);
}

/** Free what nobody needs any more. */
static void settle_core(struct core *core) {
  if (core->batches > 0) return;
  if (core->closed || core->collected) close_core(core);
  if (core->collected) free(core);
}

static void collect_core(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  struct core *core = data;
  core->collected = true;
  settle_core(core);
}

/** A batch is through: the JavaScript thread gives its keys free, with or without an answer. */
static void end_batch(struct batch *batch) {
  struct core *core = batch->core;
  for (size_t index = 0; index < batch->count; index++) {
    if (batch->jobs[index].secret != NULL) keyring_unpin(core->keyring, batch->jobs[index].slot);
  }
  free(batch);
  core->batches -= 1;
  settle_core(core);
}

/** Of tasks that no thread began. */
static void end_batches(struct task *task) {
  while (task != NULL) {
    struct batch *batch = (struct batch *)task;
    task = task->next;
    end_batch(batch);
  }
}

/**
 * The JavaScript thread ends while the core is open: its threads may not outlive what they give their results to. What
 * they have given and nobody took comes to `answer_batch` without an environment.
 */
static void end_with_environment(void *data) {
  struct core *core = data;
  struct task *left[] = {threads_end(core->threads), threads_end(core->group_threads)};
  core->threads = core->group_threads = NULL;
  core->closed = true;
  (void)napi_release_threadsafe_function(core->on_signed, napi_tsfn_release); // before its own hook, which comes next
  end_batches(left[0]);
  end_batches(left[1]);
}

// ----------------------------------------------------------------------------------------------------------------
// batches

static void sign_jobs(struct batch *batch) {
  struct signing signings[MAX_BATCH_JOBS];
  size_t count = 0;
  for (size_t index = 0; index < batch->count; index++) {
    const struct job *job = &batch->jobs[index];
    if (job->secret == NULL) continue;
    signings[count++] = (struct signing){job->secret, job->root, &batch->results[index * SIGNATURE_BYTES]};
  }
  if (count > 0) sign_roots(batch->core->cache, signings, count);
}

static void derive_jobs(struct batch *batch) {
  struct derivation derivations[MAX_BATCH_JOBS];
  size_t count = 0;
  for (size_t index = 0; index < batch->count; index++) {
    const struct job *job = &batch->jobs[index];
    if (job->secret == NULL) continue;
    derivations[count++] = (struct derivation){job->secret, &batch->results[index * PUBLIC_KEY_BYTES]};
  }
  if (count > 0) derive_public_keys(derivations, count);
}

/** On a signing thread. Reads pinned secrets in place; nothing of JavaScript may be touched here. */
static void run_jobs(struct task *task) {
  struct batch *batch = (struct batch *)task;
  if (batch->result_bytes == PUBLIC_KEY_BYTES) derive_jobs(batch);
  else sign_jobs(batch);
  // Its queue has no bound, and it ends after this thread (end_with_environment): only a fault of ours makes it refuse.
  if (napi_call_threadsafe_function(batch->core->on_signed, batch, napi_tsfn_nonblocking) != napi_ok) abort();
}

/** On the JavaScript thread. @param env NULL when the environment ends and nobody hears the answer */
static void answer_batch(napi_env env, napi_value function, void *context, void *data) {
  (void)function;
  (void)context;
  struct batch *batch = data;
  napi_value results, message, error;
  void *bytes;
  const size_t length = batch->count * batch->result_bytes;
  if (env != NULL && batch->core->batches == 1) (void)napi_unref_threadsafe_function(env, batch->core->on_signed);
  if (env != NULL && napi_create_arraybuffer(env, length, &bytes, &results) == napi_ok) {
    memcpy(bytes, batch->results, length);
    napi_resolve_deferred(env, batch->deferred, results);
  } else if (env != NULL && napi_create_string_utf8(env, "no memory for results", NAPI_AUTO_LENGTH, &message) == napi_ok &&
             napi_create_error(env, NULL, message, &error) == napi_ok) {
    napi_reject_deferred(env, batch->deferred, error);
  }
  end_batch(batch);
}

/**
 * One promise of `count × 96` bytes of signatures, or `count × 48` of public keys. A job whose handle is stale gets
 * zeros: no compressed point begins with a zero byte.
 * @param roots of each job, or with `root_step` 0 one of all; NULL: public keys are wanted
 */
static napi_value begin_batch(napi_env env, struct core *core, const double *handles, size_t count, const unsigned char *roots,
                              size_t root_step, bool is_group) {
  napi_value promise;
  struct batch *batch = calloc(1, sizeof *batch);
  if (batch == NULL) return throw_refusal(env, "no memory for a batch");
  if (napi_create_promise(env, &batch->deferred, &promise) != napi_ok) {
    free(batch);
    return throw_refusal(env, "no memory for a promise");
  }
  batch->core = core;
  batch->count = count;
  batch->result_bytes = roots == NULL ? PUBLIC_KEY_BYTES : SIGNATURE_BYTES;
  for (size_t index = 0; index < count; index++) {
    struct job *job = &batch->jobs[index];
    job->secret = keyring_pin(core->keyring, handle_from_number(handles[index]), &job->slot);
    if (roots != NULL) memcpy(job->root, roots + index * root_step, ROOT_BYTES);
  }
  // The process stays while a batch is under way, and only then.
  if (core->batches++ == 0) (void)napi_ref_threadsafe_function(env, core->on_signed);
  threads_give(is_group ? core->group_threads : core->threads, &batch->task);
  return promise;
}

static napi_value sign_batch(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  size_t count = 0;
  REQUIRE(get_arguments(env, info, 3, arguments), "signBatch(keyring, handles, roots)");
  struct core *core = get_core(env, arguments[0]);
  const double *handles = get_elements(env, arguments[1], napi_float64_array, &count);
  REQUIRE(core != NULL && !core->closed, "signBatch: not an open keyring");
  REQUIRE(handles != NULL && count >= 1 && count <= MAX_BATCH_JOBS, "signBatch: 1 to 16 handles");
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
  REQUIRE(core != NULL && !core->closed, "signGroup: not an open keyring");
  REQUIRE(handles != NULL && count >= 1 && count <= MAX_BATCH_JOBS, "signGroup: 1 to 16 handles");
  REQUIRE(root != NULL, "signGroup: one root of 32 bytes");
  return begin_batch(env, core, handles, count, root, 0, true);
}

static napi_value public_keys(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  size_t count = 0;
  REQUIRE(get_arguments(env, info, 2, arguments), "publicKeys(keyring, handles)");
  struct core *core = get_core(env, arguments[0]);
  const double *handles = get_elements(env, arguments[1], napi_float64_array, &count);
  REQUIRE(core != NULL && !core->closed, "publicKeys: not an open keyring");
  REQUIRE(handles != NULL && count >= 1 && count <= MAX_BATCH_JOBS, "publicKeys: 1 to 16 handles");
  return begin_batch(env, core, handles, count, NULL, 0, true);
}

// ----------------------------------------------------------------------------------------------------------------
// keyring

/** The threads, and what brings their results back. */
static bool start_threads(napi_env env, struct core *core, uint32_t count) {
  napi_value name;
  if (napi_create_string_utf8(env, "strongroom.signBatch", NAPI_AUTO_LENGTH, &name) != napi_ok) return false;
  if (napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, NULL, answer_batch, &core->on_signed) != napi_ok) {
    return false;
  }
  (void)napi_unref_threadsafe_function(env, core->on_signed);
  core->threads = threads_start(count, "bls signing", 0, run_jobs);
  core->group_threads = threads_start(count, "bls groups", GROUP_NICE, run_jobs);
  const bool run = core->threads != NULL && core->group_threads != NULL;
  // After on_signed was made: what was added last is called first.
  if (run && napi_add_env_cleanup_hook(env, end_with_environment, core) == napi_ok) return true;
  if (core->threads != NULL) (void)threads_end(core->threads);
  if (core->group_threads != NULL) (void)threads_end(core->group_threads);
  core->threads = core->group_threads = NULL;
  (void)napi_release_threadsafe_function(core->on_signed, napi_tsfn_release);
  return false;
}

static struct core *make_core(napi_env env, enum lock_policy policy, bool makes_tables, uint32_t threads) {
  struct core *core = calloc(1, sizeof *core);
  if (core == NULL) return NULL;
  core->env = env;
  core->cache = point_cache_open(makes_tables);
  core->keyring = core->cache == NULL ? NULL : keyring_open(policy);
  if (core->keyring != NULL && start_threads(env, core, threads)) return core;
  close_core(core);
  free(core);
  return NULL;
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

/** Of a handle that was given just now. */
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
  REQUIRE(core != NULL && !core->closed, "addKey: not an open keyring");
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

/** All of them, or none: of those that were taken before memory ended nobody would know the handle. */
static napi_value take_keys(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  size_t count = 0;
  REQUIRE(get_arguments(env, info, 3, arguments), "takeKeys(keyring, secretKeys, handles)");
  struct core *core = get_core(env, arguments[0]);
  double *handles = get_elements(env, arguments[2], napi_float64_array, &count);
  REQUIRE(core != NULL && !core->closed, "takeKeys: not an open keyring");
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
