// See memory.h. System calls: mmap, mprotect, mlock, madvise(MADV_DONTDUMP and MADV_DONTFORK, Linux), munmap.
#include "memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_size_t locked_bytes;
static atomic_size_t unlocked_bytes;

// The asm statement claims to read the memory, so the stores before it cannot be dead.
void wipe(void *bytes, size_t length) {
  if (length == 0) return;
  memset(bytes, 0, length);
  __asm__ __volatile__("" : : "r"(bytes) : "memory");
}

struct secret_memory_facts secret_memory_facts(void) {
  return (struct secret_memory_facts){.locked_bytes = atomic_load(&locked_bytes),
                                      .unlocked_bytes = atomic_load(&unlocked_bytes)};
}

static size_t page_bytes(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

static bool leave_out_of_core_dumps(void *bytes, size_t length) {
#ifdef MADV_DONTDUMP
  return madvise(bytes, length, MADV_DONTDUMP) == 0;
#else
  (void)bytes;
  (void)length;
  return true; // macOS has no such advice: there, core dumps are off through RLIMIT_CORE alone (process.c)
#endif
}

// A copy in a child process would be a second place, and would not be wiped.
static bool leave_out_of_children(void *bytes, size_t length) {
#ifdef MADV_DONTFORK
  return madvise(bytes, length, MADV_DONTFORK) == 0;
#else
  (void)bytes;
  (void)length;
  return true; // macOS has no such advice; what is started there is executed at once
#endif
}

bool secret_region_open(struct secret_region *region, size_t minimum_length, enum lock_policy policy) {
  const size_t page = page_bytes();
  if (minimum_length == 0 || minimum_length > SIZE_MAX / 2) return false;
  const size_t length = (minimum_length + page - 1) / page * page;
  const size_t mapped_length = length + 2 * page;

  // A guard page on either side stays inaccessible: reading past a neighbour's end faults instead of reaching a secret.
  unsigned char *mapped = mmap(NULL, mapped_length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
  unsigned char *bytes = mapped + page;
  bool usable = mprotect(bytes, length, PROT_READ | PROT_WRITE) == 0;
  bool locked = false;
  if (usable) {
    const bool hidden = leave_out_of_core_dumps(bytes, length) && leave_out_of_children(bytes, length);
    locked = policy != LOCK_OFF && mlock(bytes, length) == 0 && hidden;
    if (policy == LOCK_REQUIRED) usable = locked;
  }
  if (!usable) {
    munmap(mapped, mapped_length);
    return false;
  }
  atomic_fetch_add(locked ? &locked_bytes : &unlocked_bytes, length);
  *region = (struct secret_region){.bytes = bytes, .length = length, .locked = locked};
  return true;
}

void secret_region_close(struct secret_region *region) {
  const size_t page = page_bytes();
  wipe(region->bytes, region->length);
  munmap(region->bytes - page, region->length + 2 * page);
  atomic_fetch_sub(region->locked ? &locked_bytes : &unlocked_bytes, region->length);
  *region = (struct secret_region){.bytes = NULL, .length = 0, .locked = false};
}
