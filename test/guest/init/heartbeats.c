// The parent's end of the heartbeat in the guest of suite "init": the first is answered with another byte, all later
// ones with their own. Only for a guest: it listens on vsock.

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
// After sys/socket.h, whose types it uses.
#include <linux/vm_sockets.h>

int main(void) {
  struct sockaddr_vm address;
  memset(&address, 0, sizeof address);
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_ANY;
  address.svm_port = 9000;
  const int listener = socket(AF_VSOCK, SOCK_STREAM, 0);
  if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 8) != 0) {
    perror("heartbeats");
    return 1;
  }
  for (int count = 1;; count++) {
    unsigned char byte = 0;
    const int stream = accept(listener, NULL, NULL);
    if (stream == -1 || recv(stream, &byte, 1, 0) != 1) return 1;
    (void)dprintf(STDOUT_FILENO, "heartbeat %d: %02x\n", count, byte);
    if (count == 1) byte = 0;
    if (send(stream, &byte, 1, MSG_NOSIGNAL) != 1 || close(stream) != 0) return 1;
  }
}
