// The secret keys of one BLS core and the handles that name them. Only the thread that opened a keyring may call these
// functions; other threads may read a pinned secret through its pointer. So the table needs no lock, and a removed key
// is wiped only when no batch reads it any more.
#ifndef STRONGROOM_KEYRING_H
#define STRONGROOM_KEYRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blst.h"
#include "memory.h"

enum { SECRET_KEY_BYTES = 32 };

/**
 * Handles are `generation × HANDLE_INDEX_LIMIT + slot index`, below 2^53, so JavaScript holds them exactly. No handle
 * is 0.
 */
#define HANDLE_INDEX_LIMIT ((uint64_t)1 << 24)
#define HANDLE_GENERATION_LIMIT ((uint32_t)1 << 29)

struct keyring;

enum keyring_result { KEYRING_ADDED, KEYRING_NOT_A_SECRET_KEY, KEYRING_NO_MEMORY };

/** Opens with its first memory mapped, so that a refusal to lock shows at the start. NULL on failure. */
struct keyring *keyring_open(enum lock_policy policy);

/** Live keys whose memory is not locked: under LOCK_BEST_EFFORT those that came after the limit. */
uint32_t keyring_unlocked_keys(const struct keyring *keyring);

/** Wipe every key that no batch reads; the pinned ones are wiped as they are unpinned. All handles become stale. */
void keyring_wipe(struct keyring *keyring);

/** Wipe and unmap. Nothing may be pinned. */
void keyring_close(struct keyring *keyring);

/** Take a copy of a big-endian secret scalar. KEYRING_NOT_A_SECRET_KEY: zero, or not below the group order. */
enum keyring_result keyring_add(struct keyring *keyring, const unsigned char secret_key[SECRET_KEY_BYTES], uint64_t *handle);

/**
 * Make the handle stale and wipe the key, at once or when the last batch that reads it ends. Stale handles are ignored.
 */
void keyring_remove(struct keyring *keyring, uint64_t handle);

/** The secret of a handle, readable by any thread until keyring_unpin(slot). NULL when the handle is stale. */
const blst_scalar *keyring_pin(struct keyring *keyring, uint64_t handle, uint32_t *slot);
void keyring_unpin(struct keyring *keyring, uint32_t slot);

#endif
