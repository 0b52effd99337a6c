// See process.h. System calls: setrlimit(RLIMIT_CORE), prctl(PR_SET_DUMPABLE, Linux), adjtimex without a mode (Linux),
// madvise(MADV_DONTNEED) and brk (glibc).
#include "process.h"

#include <sys/resource.h>

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>
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

bool read_kernel_clock(struct kernel_clock *clock) {
#ifdef __linux__
  // The call itself: glibc asks by clock_adjtime, which the filter refuses (seccomp.c).
  struct timex now = {.modes = 0};
  if (syscall(SYS_adjtimex, &now) < 0) return false;
  const double fraction = (double)now.time.tv_usec / ((now.status & STA_NANO) != 0 ? 1e6 : 1e3);
  clock->milliseconds = (double)now.time.tv_sec * 1e3 + fraction;
  clock->is_synchronised = (now.status & STA_UNSYNC) == 0;
  return true;
#else
  (void)clock;
  return false;
#endif
}
