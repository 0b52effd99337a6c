// Starts the signer with exactly these arguments and this environment, and waits for its end. Both are part of the
// measured image.

#include "signer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"

#define NODE "/usr/bin/node"

// The options of bin/strongroom, for the reasons given there, and the image's own CA bundle in place of Node's.
static char *const ARGUMENTS[] = {
    NODE,
    "--disable-sigusr1",
    "--disable-warning=ExperimentalWarning",
    "--max-semi-space-size=16",
    "--v8-pool-size=0",
    "--use-openssl-ca",
    "/app/main.mjs",
    NULL,
};

/** The signer reads no standard input; the console is the parent's in debug mode. */
static void close_input(void) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing == -1 || dup2(nothing, STDIN_FILENO) == -1) {
    report("the signer has no /dev/null");
    _exit(126);
  }
}

pid_t start_signer(unsigned int cid, int unsigned_evidence) {
  char parent[64];
  (void)snprintf(parent, sizeof parent, "STRONGROOM_PARENT_CID=%u", cid);
  char *const environment[] = {
      "PATH=/usr/bin:/bin",
      "SSL_CERT_FILE=/etc/ssl/certs/ca-bundle.pem",
      "MALLOC_ARENA_MAX=2",
      parent,
      unsigned_evidence ? "STRONGROOM_EVIDENCE=unsigned" : NULL,
      NULL,
  };
  const pid_t child = fork();
  if (child == -1) fail("starting the signer");
  if (child != 0) return child;
  close_input();
  (void)execve(NODE, ARGUMENTS, environment);
  report("executing " NODE " failed (errno %d)", errno);
  _exit(127);
}

int await_signer(pid_t signer) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended == signer) return status;
    // Any other is a process that the signer left behind.
    if (ended == -1 && errno != EINTR) fail("waiting for the signer");
  }
}
