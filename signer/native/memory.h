// Memory for secrets: whole pages between two guard pages, locked in RAM and left out of core dumps as far as the
// system allows. Knows nothing of keys or of JavaScript.
#ifndef STRONGROOM_MEMORY_H
#define STRONGROOM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/** What `server.mlock` asks for (specification/operating.md#secrets). */
enum lock_policy { LOCK_OFF, LOCK_BEST_EFFORT, LOCK_REQUIRED };

/** One mapping. `bytes` is zeroed, `length` a whole number of pages. */
struct secret_region {
  unsigned char *bytes;
  size_t length;
  bool locked;
};

/** Bytes of all open regions of the process, by whether they are both locked and left out of core dumps. */
struct secret_memory_facts {
  size_t locked_bytes;
  size_t unlocked_bytes;
};

/**
 * Map at least `minimum_length` bytes. False when there is no memory, or when the policy is LOCK_REQUIRED and the
 * region cannot be locked: nothing stays mapped then.
 */
bool secret_region_open(struct secret_region *region, size_t minimum_length, enum lock_policy policy);

/** Wipe, then unmap (which unlocks). */
void secret_region_close(struct secret_region *region);

struct secret_memory_facts secret_memory_facts(void);

/** Zeroes bytes in a way that the compiler cannot leave out, even when no code reads them again. */
void wipe(void *bytes, size_t length);

#endif
