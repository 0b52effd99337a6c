// A few threads that run tasks in the order they were given, those that yield after the others. Knows nothing of keys
// or of JavaScript.
#ifndef STRONGROOM_THREADS_H
#define STRONGROOM_THREADS_H

#include <stdbool.h>

/** What a task begins with: its place in the waiting line. */
struct task {
  struct task *next;
};

/** Called on one of the threads, once for each task; the task is the runner's from then on. */
typedef void (*task_runner)(struct task *task);

struct threads;

/**
 * @param name of each thread, up to 15 characters, a constant, for whoever looks at the process
 * @returns NULL when the system gives fewer threads than asked for: then none is left running
 */
struct threads *threads_start(unsigned count, const char *name, task_runner run);

/**
 * Append a task. Not after `threads_end`.
 * @param yields it waits while there are others; but of five tasks that are begun one is of its kind, while any waits
 */
void threads_give(struct threads *threads, struct task *task, bool yields);

/**
 * Let the threads finish what they have begun, and wait for them.
 * @returns the tasks that none of them began, as a list: the others before those that yield, each in their order
 */
struct task *threads_end(struct threads *threads);

#endif
