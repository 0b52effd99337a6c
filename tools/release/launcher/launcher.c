// The entry point of a release, where there may be no shell (bin/strongroom is its like in a checkout). It finds the
// folder it lies in, and runs the program on the Node.js, the loader and the libraries of that folder, so that nothing
// of the host but its kernel is needed. It trusts that folder; it refuses an environment that asks for a debugger.

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#if defined(__x86_64__)
#define LOADER "runtime/ld-linux-x86-64.so.2"
#elif defined(__aarch64__)
#define LOADER "runtime/ld-linux-aarch64.so.1"
#else
#error "a release is for x86-64 or aarch64"
#endif

#define MAX_PATH_BYTES (PATH_MAX + 64)
/** What stands before the arguments that were given, and the end of the list. */
#define MAX_OWN_ARGUMENTS 16
/** EX_CONFIG and others are the program's own; a launcher that cannot launch fails as the program does. */
#define FAILED 1

static char root[PATH_MAX];

static void fail(const char *problem, const char *what) {
  fprintf(stderr, "strongroom: %s: %s (%s)\n", problem, what, strerror(errno));
  exit(FAILED);
}

/** The folder above the one this program lies in, by the kernel's word; by the path that was run where /proc is not. */
static void find_root(void) {
  const char *run = (const char *)getauxval(AT_EXECFN);
  if (realpath("/proc/self/exe", root) == NULL && (run == NULL || realpath(run, root) == NULL))
    fail("cannot find its own folder", run == NULL ? "?" : run);
  for (int levels = 0; levels < 2; levels++) {
    char *slash = strrchr(root, '/');
    if (slash == NULL) fail("cannot find its own folder", root);
    *slash = '\0';
  }
}

static char *in_root(const char *name) {
  char *path = malloc(MAX_PATH_BYTES);
  if (path == NULL || snprintf(path, MAX_PATH_BYTES, "%s/%s", root, name) >= MAX_PATH_BYTES) fail("no such path", name);
  return path;
}

/** Tools that start Web3Signer by its path find it under a link of that name. */
static int is_named_web3signer(const char *given) {
  const char *slash = strrchr(given, '/');
  return strcmp(slash == NULL ? given : slash + 1, "web3signer") == 0;
}

int main(int argc, char **argv) {
  // A debugger in this process could sign anything: no signal starts one, and no environment asks for one.
  const char *options = getenv("NODE_OPTIONS");
  if (options != NULL && strstr(options, "--inspect") != NULL) {
    fputs("strongroom: NODE_OPTIONS must not open a debugger (--inspect)\n", stderr);
    return FAILED;
  }
  // glibc gives each thread an arena that keeps what was freed: loading keys with many threads left tens of megabytes.
  if (setenv("MALLOC_ARENA_MAX", "2", 0) != 0) fail("cannot set", "MALLOC_ARENA_MAX");
  find_root();

  char **own = calloc((size_t)argc + MAX_OWN_ARGUMENTS, sizeof *own);
  if (own == NULL) fail("no memory", "arguments");
  int count = 0;
  own[count++] = in_root(LOADER);
  own[count++] = "--inhibit-cache";
  own[count++] = "--library-path";
  own[count++] = in_root("runtime");
  own[count++] = in_root("runtime/node");
  own[count++] = "--disable-sigusr1";
  own[count++] = "--disable-warning=ExperimentalWarning";
  // bin/strongroom says why, of both.
  own[count++] = "--max-semi-space-size=16";
  own[count++] = "--v8-pool-size=0";
  own[count++] = in_root("app/main.mjs");
  if (argc > 0 && is_named_web3signer(argv[0])) own[count++] = "web3signer";
  for (int at = 1; at < argc; at++) own[count++] = argv[at];
  execv(own[0], own);
  fail("cannot run", own[0]);
}
