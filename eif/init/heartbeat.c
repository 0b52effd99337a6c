// Tells the parent instance that the image is up: one byte to its port 9000 and the same byte back. nitro-cli listens
// there while it starts an enclave, and ends one that does not report. It proves nothing to either side. vsock(7).

#include "heartbeat.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
// After sys/socket.h, whose types it uses.
#include <linux/vm_sockets.h>

#include "report.h"

#define HEARTBEAT_PORT 9000u
#define HEARTBEAT_BYTE 0xb7u
#define MAX_ATTEMPTS 20
static const struct timeval ANSWER_LIMIT = {.tv_sec = 5, .tv_usec = 0};
static const struct timespec PAUSE = {.tv_sec = 0, .tv_nsec = 500000000L};

/** @returns 0, or -1 and errno */
static int exchange(int stream, const struct sockaddr_vm *parent) {
  if (setsockopt(stream, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &ANSWER_LIMIT, sizeof ANSWER_LIMIT) != 0) return -1;
  if (setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &ANSWER_LIMIT, sizeof ANSWER_LIMIT) != 0) return -1;
  if (connect(stream, (const struct sockaddr *)parent, sizeof *parent) != 0) return -1;
  const unsigned char sent = HEARTBEAT_BYTE;
  if (send(stream, &sent, sizeof sent, MSG_NOSIGNAL) != (ssize_t)sizeof sent) return -1;
  unsigned char answer = 0;
  const ssize_t got = recv(stream, &answer, sizeof answer, 0);
  if (got == -1) return -1;
  if (got != (ssize_t)sizeof answer || answer != HEARTBEAT_BYTE) {
    errno = EPROTO;
    return -1;
  }
  return 0;
}

static int attempt(const struct sockaddr_vm *parent) {
  const int stream = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (stream == -1) return -1;
  const int outcome = exchange(stream, parent);
  const int reason = errno;
  if (close(stream) != 0) return -1;
  errno = reason;
  return outcome;
}

void send_heartbeat(unsigned int cid) {
  struct sockaddr_vm parent;
  memset(&parent, 0, sizeof parent);
  parent.svm_family = AF_VSOCK;
  parent.svm_cid = cid;
  parent.svm_port = HEARTBEAT_PORT;
  // The parent's end may come up a moment after us.
  for (int attempts = 1; attempt(&parent) != 0; attempts++) {
    if (attempts == MAX_ATTEMPTS) fail("no heartbeat with the parent (CID %u, port %u)", cid, HEARTBEAT_PORT);
    (void)nanosleep(&PAUSE, NULL);
  }
}
