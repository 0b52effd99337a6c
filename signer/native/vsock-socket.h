// A vsock socket and its address, for listening and connecting alike. Linux only: elsewhere nothing is declared.
#ifndef STRONGROOM_VSOCK_SOCKET_H
#define STRONGROOM_VSOCK_SOCKET_H

#ifdef __linux__

#include <linux/vm_sockets.h>
#include <stdint.h>
#include <sys/socket.h>

struct sockaddr_vm vsock_address(uint32_t cid, uint32_t port);

/** A socket that neither blocks nor outlives an exec, or a negated errno. */
int new_vsock_socket(void);

#endif

#endif
