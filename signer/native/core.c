// See core.h. Trusts its callers to have looked at arguments. Secrets are read in place, on signing threads, and never
// come back.
#include "core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "derive.h"

_Static_assert((int)MAX_DERIVATIONS >= (int)MAX_BATCH_JOBS, "public keys of a batch are made together");
/**
 * How far the threads that sign for groups stand back: the main thread, the database's and a thread that signs a single
 * message get a core at once, and next to a busy process the groups still get a tenth of one.
 */
enum { GROUP_NICE = 10 };

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

// ----------------------------------------------------------------------------------------------------------- life

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

void settle_core(struct core *core) {
  if (core->batches > 0) return;
  if (core->closed || core->collected) close_core(core);
  if (core->collected) free(core);
}

void collect_core(napi_env env, void *data, void *hint) {
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

/** Ends batches that no thread began. */
static void end_batches(struct task *task) {
  while (task != NULL) {
    struct batch *batch = (struct batch *)task;
    task = task->next;
    end_batch(batch);
  }
}

/**
 * The JavaScript thread ends while the core is open: its threads may not outlive what they give their results to.
 * Results that were given and not taken come to `answer_batch` without an environment.
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

// -------------------------------------------------------------------------------------------------------- batches

uint64_t handle_from_number(double number) {
  return number >= 1 && number < 9007199254740992.0 && floor(number) == number ? (uint64_t)number : 0;
}

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

/** On the JavaScript thread. @param env NULL when the environment ends: no caller gets the answer then */
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

napi_value begin_batch(napi_env env, struct core *core, const double *handles, size_t count, const unsigned char *roots,
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

// ------------------------------------------------------------------------------------------------------- a new one

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

struct core *make_core(napi_env env, enum lock_policy policy, bool makes_tables, uint32_t threads) {
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
