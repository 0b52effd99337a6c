// See process.h. System calls: setrlimit(RLIMIT_CORE), prctl(PR_SET_DUMPABLE, Linux), madvise(MADV_DONTNEED) and brk
// (glibc).
#include "process.h"

#include <sys/resource.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

bool disable_core_dumps(void) {
  const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return false;
#ifdef __linux__
  // RLIMIT_CORE does not bind a core_pattern that pipes to a program; this does, and it keeps other processes of the
  // same user from attaching and from reading /proc/<pid>/mem.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return false;
#endif
  return true;
}

void return_freed_memory(void) {
#ifdef __GLIBC__
  (void)malloc_trim(0);
#endif
}
