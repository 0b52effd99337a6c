// See keyring.h. Secrets lie in slabs of locked memory, 32 bytes each and nothing else; what belongs to a slot besides
// its secret lies in ordinary memory. Slabs are never moved or given back before the keyring closes, so a pointer to a
// secret stays good.
#include "keyring.h"

#include <stdlib.h>

/** Small enough for the 64 KiB of locked memory that old kernels allow a process; 512 keys. */
#define SLAB_BYTES ((size_t)16 * 1024)
#define NO_SLOT UINT32_MAX

struct slot {
  uint32_t generation; // of the handle that is, or was last, good for this slot
  uint32_t pins;       // jobs under way that read the secret
  uint32_t next_free;
  bool live;
};

struct keyring {
  enum lock_policy policy;
  struct secret_region *slabs;
  size_t slab_count;
  size_t secrets_per_slab;
  struct slot *slots;
  uint32_t slot_count;
  uint32_t first_free;
  uint32_t unlocked_keys; // live, in slabs that are not locked
};

static blst_scalar *secret_of(const struct keyring *keyring, uint32_t index) {
  const struct secret_region *slab = &keyring->slabs[index / keyring->secrets_per_slab];
  return (blst_scalar *)slab->bytes + index % keyring->secrets_per_slab;
}

static bool is_locked(const struct keyring *keyring, uint32_t index) {
  return keyring->slabs[index / keyring->secrets_per_slab].locked;
}

static void push_free(struct keyring *keyring, uint32_t index) {
  keyring->slots[index].next_free = keyring->first_free;
  keyring->first_free = index;
}

/** One slab more, with its slots on the free list. */
static bool grow(struct keyring *keyring) {
  struct secret_region *slabs = realloc(keyring->slabs, (keyring->slab_count + 1) * sizeof *slabs);
  if (slabs == NULL) return false;
  keyring->slabs = slabs;

  struct secret_region slab;
  if (!secret_region_open(&slab, SLAB_BYTES, keyring->policy)) return false;
  const size_t added = slab.length / sizeof(blst_scalar);
  const size_t slot_count = keyring->slot_count + added;
  struct slot *slots = slot_count > HANDLE_INDEX_LIMIT ? NULL : realloc(keyring->slots, slot_count * sizeof *slots);
  if (slots == NULL) {
    secret_region_close(&slab);
    return false;
  }
  keyring->slots = slots;
  keyring->secrets_per_slab = added;
  keyring->slabs[keyring->slab_count++] = slab;
  for (size_t index = slot_count; index-- > keyring->slot_count;) {
    slots[index] = (struct slot){.generation = 0, .pins = 0, .live = false};
    push_free(keyring, (uint32_t)index);
  }
  keyring->slot_count = (uint32_t)slot_count;
  return true;
}

struct keyring *keyring_open(enum lock_policy policy) {
  struct keyring *keyring = calloc(1, sizeof *keyring);
  if (keyring == NULL) return NULL;
  keyring->policy = policy;
  keyring->first_free = NO_SLOT;
  if (!grow(keyring)) {
    keyring_close(keyring);
    return NULL;
  }
  return keyring;
}

uint32_t keyring_unlocked_keys(const struct keyring *keyring) {
  return keyring->unlocked_keys;
}

void keyring_close(struct keyring *keyring) {
  for (size_t slab = 0; slab < keyring->slab_count; slab++) secret_region_close(&keyring->slabs[slab]);
  free(keyring->slabs);
  free(keyring->slots);
  free(keyring);
}

/** Wipe a slot that is neither live nor pinned, and let it be used again unless its generations are used up. */
static void release(struct keyring *keyring, uint32_t index) {
  wipe(secret_of(keyring, index), sizeof(blst_scalar));
  if (keyring->slots[index].generation + 1 < HANDLE_GENERATION_LIMIT) push_free(keyring, index);
}

static void retire(struct keyring *keyring, uint32_t index) {
  keyring->slots[index].live = false;
  if (!is_locked(keyring, index)) keyring->unlocked_keys -= 1;
  if (keyring->slots[index].pins == 0) release(keyring, index);
}

enum keyring_result keyring_add(struct keyring *keyring, const unsigned char secret_key[SECRET_KEY_BYTES], uint64_t *handle) {
  if (keyring->first_free == NO_SLOT && !grow(keyring)) return KEYRING_NO_MEMORY;
  const uint32_t index = keyring->first_free;
  struct slot *slot = &keyring->slots[index];
  blst_scalar *secret = secret_of(keyring, index);

  blst_scalar_from_bendian(secret, secret_key);
  if (!blst_sk_check(secret)) {
    wipe(secret, sizeof *secret);
    return KEYRING_NOT_A_SECRET_KEY;
  }
  keyring->first_free = slot->next_free;
  slot->generation += 1;
  slot->live = true;
  if (!is_locked(keyring, index)) keyring->unlocked_keys += 1;
  *handle = slot->generation * HANDLE_INDEX_LIMIT + index;
  return KEYRING_ADDED;
}

/** The slot a handle names, or NO_SLOT when the key it named is gone or never was. */
static uint32_t find(const struct keyring *keyring, uint64_t handle) {
  const uint64_t index = handle % HANDLE_INDEX_LIMIT;
  if (index >= keyring->slot_count) return NO_SLOT;
  const struct slot *slot = &keyring->slots[index];
  return slot->live && slot->generation == handle / HANDLE_INDEX_LIMIT ? (uint32_t)index : NO_SLOT;
}

void keyring_remove(struct keyring *keyring, uint64_t handle) {
  const uint32_t index = find(keyring, handle);
  if (index != NO_SLOT) retire(keyring, index);
}

void keyring_wipe(struct keyring *keyring) {
  for (uint32_t index = 0; index < keyring->slot_count; index++) {
    if (keyring->slots[index].live) retire(keyring, index);
  }
}

const blst_scalar *keyring_pin(struct keyring *keyring, uint64_t handle, uint32_t *slot) {
  const uint32_t index = find(keyring, handle);
  if (index == NO_SLOT) return NULL;
  keyring->slots[index].pins += 1;
  *slot = index;
  return secret_of(keyring, index);
}

void keyring_unpin(struct keyring *keyring, uint32_t slot) {
  keyring->slots[slot].pins -= 1;
  if (keyring->slots[slot].pins == 0 && !keyring->slots[slot].live) release(keyring, slot);
}
