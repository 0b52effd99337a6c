// See vsock-socket.h. System calls: socket.
#include "vsock-socket.h"

#include "descriptors.h"

#ifdef __linux__

struct sockaddr_vm vsock_address(uint32_t cid, uint32_t port) {
  return (struct sockaddr_vm){.svm_family = AF_VSOCK, .svm_cid = cid, .svm_port = port};
}

int new_vsock_socket(void) {
  return errno_or(socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

#endif
