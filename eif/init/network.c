// The loopback interface, on which the signer listens for what it sends to its egress endpoints. An enclave has no
// other. netdevice(7).

#include "network.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report.h"

void raise_loopback(void) {
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control == -1) fail("opening a socket for the loopback interface");
  struct ifreq request;
  memset(&request, 0, sizeof request);
  memcpy(request.ifr_name, "lo", sizeof "lo");
  if (ioctl(control, SIOCGIFFLAGS, &request) != 0) fail("reading the loopback interface");
  request.ifr_flags = (short)(request.ifr_flags | IFF_UP | IFF_RUNNING);
  if (ioctl(control, SIOCSIFFLAGS, &request) != 0) fail("raising the loopback interface");
  if (close(control) != 0) fail("closing the socket of the loopback interface");
}
