// What is asked of the system about the whole process: its memory, and the clock it goes by.
#ifndef STRONGROOM_PROCESS_H
#define STRONGROOM_PROCESS_H

#include <stdbool.h>

/**
 * No core dumps, for good: the limit goes to 0, and on Linux the process is marked not dumpable. False when refused.
 */
bool disable_core_dumps(void);

/** What was freed goes back to the system. glibc keeps it otherwise; other C libraries have no such call. */
void return_freed_memory(void);

/** The kernel's clock, in milliseconds since the Unix epoch, and whether a time service sets it right. */
struct kernel_clock {
  double milliseconds;
  bool is_synchronised;
};

/** False when the system does not say: outside Linux, or where the call is refused. It sets nothing. */
bool read_kernel_clock(struct kernel_clock *clock);

#endif
