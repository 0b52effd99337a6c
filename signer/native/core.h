// A signing core: a keyring, the threads that sign with it, and the batches under way. Its life ends when it is closed
// or JavaScript lets go of it, and no batch is under way any more.
#ifndef STRONGROOM_CORE_H
#define STRONGROOM_CORE_H

#include <node_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keyring.h"
#include "sign.h"
#include "threads.h"

/** Jobs in one batch. */
enum { MAX_BATCH_JOBS = MAX_SIGNINGS };

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

/** @returns NULL when there is no memory, or there are no threads, or memory cannot be locked */
struct core *make_core(napi_env env, enum lock_policy policy, bool makes_tables, uint32_t threads);

/** Frees what is not needed any more. */
void settle_core(struct core *core);

/** JavaScript lets go of the core: a finalizer. */
void collect_core(napi_env env, void *data, void *hint);

/** What is not a whole number below 2^53 becomes 0, which names no key. */
uint64_t handle_from_number(double number);

/**
 * One promise of `count × 96` bytes of signatures, or `count × 48` of public keys. A job whose handle is stale gets
 * zeros: no compressed point begins with a zero byte.
 * @param roots of each job, or with `root_step` 0 one of all; NULL: public keys are wanted
 */
napi_value begin_batch(napi_env env, struct core *core, const double *handles, size_t count, const unsigned char *roots,
                       size_t root_step, bool is_group);

#endif
