// What is asked of the system about the memory of the whole process.
#ifndef STRONGROOM_PROCESS_H
#define STRONGROOM_PROCESS_H

#include <stdbool.h>

/**
 * No core dumps, for good: the limit goes to 0, and on Linux the process is marked not dumpable. False when refused.
 */
bool disable_core_dumps(void);

/** What was freed goes back to the system. glibc keeps it otherwise; other C libraries have no such call. */
void return_freed_memory(void);

#endif
