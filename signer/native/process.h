// Settings of the whole process that keep its memory to itself.
#ifndef STRONGROOM_PROCESS_H
#define STRONGROOM_PROCESS_H

#include <stdbool.h>

/**
 * No core dumps, for good: the limit goes to 0, and on Linux the process is marked not dumpable. False when refused.
 */
bool disable_core_dumps(void);

#endif
