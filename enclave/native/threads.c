// See threads.h. One mutex guards both lines; a thread that finds them empty sleeps until a task is given.
#include "threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/** How often in a row tasks that yield are passed over. */
enum { MAX_PASSED_OVER = 4 };

struct line {
  struct task *first;
  struct task **end; // where the next task is linked
};

struct threads {
  pthread_mutex_t mutex;
  pthread_cond_t given;
  struct line usual;
  struct line yielding;
  unsigned passed_over;
  bool ending;
  const char *name;
  task_runner run;
  unsigned count; // of those running
  pthread_t handles[];
};

static void empty(struct line *line) {
  line->first = NULL;
  line->end = &line->first;
}

static void append(struct line *line, struct task *task) {
  task->next = NULL;
  *line->end = task;
  line->end = &task->next;
}

/** Not of an empty line. */
static struct task *take_first(struct line *line) {
  struct task *task = line->first;
  line->first = task->next;
  if (line->first == NULL) line->end = &line->first;
  return task;
}

/** The mutex is held, and a task waits. */
static struct task *take_next(struct threads *threads) {
  const bool others_wait = threads->usual.first != NULL;
  if (threads->yielding.first == NULL) return take_first(&threads->usual);
  if (others_wait && threads->passed_over < MAX_PASSED_OVER) {
    threads->passed_over += 1;
    return take_first(&threads->usual);
  }
  threads->passed_over = 0;
  return take_first(&threads->yielding);
}

/** NULL when the threads are to end. */
static struct task *take(struct threads *threads) {
  pthread_mutex_lock(&threads->mutex);
  while (threads->usual.first == NULL && threads->yielding.first == NULL && !threads->ending) {
    pthread_cond_wait(&threads->given, &threads->mutex);
  }
  struct task *task = threads->ending ? NULL : take_next(threads);
  pthread_mutex_unlock(&threads->mutex);
  return task;
}

static void *work(void *argument) {
  struct threads *threads = argument;
#ifdef __linux__
  (void)pthread_setname_np(pthread_self(), threads->name);
#endif
  for (struct task *task = take(threads); task != NULL; task = take(threads)) threads->run(task);
  return NULL;
}

struct threads *threads_start(unsigned count, const char *name, task_runner run) {
  struct threads *threads = calloc(1, sizeof *threads + count * sizeof(pthread_t));
  if (threads == NULL) return NULL;
  empty(&threads->usual);
  empty(&threads->yielding);
  threads->name = name;
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

void threads_give(struct threads *threads, struct task *task, bool yields) {
  pthread_mutex_lock(&threads->mutex);
  append(yields ? &threads->yielding : &threads->usual, task);
  pthread_cond_signal(&threads->given);
  pthread_mutex_unlock(&threads->mutex);
}

struct task *threads_end(struct threads *threads) {
  pthread_mutex_lock(&threads->mutex);
  threads->ending = true;
  pthread_cond_broadcast(&threads->given);
  pthread_mutex_unlock(&threads->mutex);
  for (unsigned index = 0; index < threads->count; index++) pthread_join(threads->handles[index], NULL);
  *threads->usual.end = threads->yielding.first;
  struct task *left = threads->usual.first;
  pthread_cond_destroy(&threads->given);
  pthread_mutex_destroy(&threads->mutex);
  free(threads);
  return left;
}
