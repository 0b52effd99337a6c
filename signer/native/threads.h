// A few threads that run tasks in the order they were given. Knows nothing of keys or of JavaScript.
#ifndef STRONGROOM_THREADS_H
#define STRONGROOM_THREADS_H

/** What a task begins with: its place in the waiting line. */
struct task {
  struct task *next;
};

/** Called on one of the threads, once for each task; the task is the runner's from then on. */
typedef void (*task_runner)(struct task *task);

struct threads;

/**
 * @param name of each thread, up to 15 characters, a constant, for tools that list threads
 * @param nice how far each thread stands back behind others that want a core (sched_setattr(2), Linux only), 0 or more:
 * above 0 each also gives up its core at once to a thread that wakes up
 * @returns NULL when the system gives fewer threads than asked for: then none is left running
 */
struct threads *threads_start(unsigned count, const char *name, int nice, task_runner run);

/** Append a task. Not after `threads_end`. */
void threads_give(struct threads *threads, struct task *task);

/**
 * Let the threads finish what they have begun, and wait for them.
 * @returns the tasks that none of them began, as a list in their order
 */
struct task *threads_end(struct threads *threads);

#endif
