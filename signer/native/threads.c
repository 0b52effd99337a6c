// See threads.h. One mutex guards the line; a thread that finds it empty sleeps until a task is given.
#include "threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#ifdef __linux__
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/** Several of the usual ones. */
#define LONG_SLICE_NANOSECONDS 10000000

struct threads {
  pthread_mutex_t mutex;
  pthread_cond_t given;
  struct task *first;
  struct task **end; // where the next task is linked
  bool ending;
  const char *name;
  int nice;
  task_runner run;
  unsigned count; // of those running
  pthread_t handles[];
};

/** NULL when the threads are to end. */
static struct task *take(struct threads *threads) {
  pthread_mutex_lock(&threads->mutex);
  while (threads->first == NULL && !threads->ending) pthread_cond_wait(&threads->given, &threads->mutex);
  struct task *task = threads->ending ? NULL : threads->first;
  if (task != NULL) threads->first = task->next;
  if (threads->first == NULL) threads->end = &threads->first;
  pthread_mutex_unlock(&threads->mutex);
  return task;
}

#ifdef __linux__
/** struct sched_attr of sched_setattr(2), as it was first: glibc has none before 2.41. */
struct scheduling {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  /** `runtime`, in nanoseconds. From Linux 6.12 on it is the slice of an ordinary thread; older kernels ignore it. */
  uint64_t slice;
  uint64_t deadline;
  uint64_t period;
};

/** From then on the others run before this thread. Best effort: a system may refuse. */
static void stand_back(int nice) {
  // Linux keeps a nice value for each thread, so the other threads keep theirs. `nice` is added to the value that the
  // thread has from its process, because the process may have one of its own.
  const id_t thread = (id_t)syscall(SYS_gettid);
  const struct scheduling scheduling = {
      .size = sizeof scheduling,
      .policy = SCHED_OTHER,
      .nice = getpriority(PRIO_PROCESS, thread) + nice,
      // A thread that wakes up with the usual, shorter slice takes the core at once.
      .slice = LONG_SLICE_NANOSECONDS,
  };
  (void)syscall(SYS_sched_setattr, thread, &scheduling, 0);
}
#endif

static void *work(void *argument) {
  struct threads *threads = argument;
#ifdef __linux__
  (void)pthread_setname_np(pthread_self(), threads->name);
  if (threads->nice > 0) stand_back(threads->nice);
#endif
  for (struct task *task = take(threads); task != NULL; task = take(threads)) threads->run(task);
  return NULL;
}

struct threads *threads_start(unsigned count, const char *name, int nice, task_runner run) {
  struct threads *threads = calloc(1, sizeof *threads + count * sizeof(pthread_t));
  if (threads == NULL) return NULL;
  threads->end = &threads->first;
  threads->name = name;
  threads->nice = nice;
  threads->run = run;
  if (pthread_mutex_init(&threads->mutex, NULL) != 0) {
    free(threads);
    return NULL;
  }
  if (pthread_cond_init(&threads->given, NULL) != 0) {
    pthread_mutex_destroy(&threads->mutex);
    free(threads);
    return NULL;
  }
  while (threads->count < count) {
    if (pthread_create(&threads->handles[threads->count], NULL, work, threads) != 0) {
      threads_end(threads);
      return NULL;
    }
    threads->count += 1;
  }
  return threads;
}

void threads_give(struct threads *threads, struct task *task) {
  task->next = NULL;
  pthread_mutex_lock(&threads->mutex);
  *threads->end = task;
  threads->end = &task->next;
  pthread_cond_signal(&threads->given);
  pthread_mutex_unlock(&threads->mutex);
}

struct task *threads_end(struct threads *threads) {
  pthread_mutex_lock(&threads->mutex);
  threads->ending = true;
  pthread_cond_broadcast(&threads->given);
  pthread_mutex_unlock(&threads->mutex);
  for (unsigned index = 0; index < threads->count; index++) pthread_join(threads->handles[index], NULL);
  struct task *left = threads->first;
  pthread_cond_destroy(&threads->given);
  pthread_mutex_destroy(&threads->mutex);
  free(threads);
  return left;
}
