// See vsock.h. Results are a number each: a descriptor, a CID, 0, or a negated errno, which vsock.ts names. The caller
// that gets a descriptor owns it. System calls: socket, bind, listen, getpeername, open and ioctl of /dev/vsock, close.
#include "vsock.h"

#include "arguments.h"
#include "descriptors.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vsock-socket.h"

static int bind_port(uint32_t port) {
  const struct sockaddr_vm address = vsock_address(VMADDR_CID_ANY, port);
  const int descriptor = new_vsock_socket();
  if (descriptor < 0) return descriptor;
  if (bind(descriptor, (const struct sockaddr *)&address, sizeof address) == 0) return descriptor;
  return give_up(descriptor, -errno);
}

static napi_value vsock_bind(napi_env env, napi_callback_info info) {
  napi_value argument;
  uint32_t port;
  REQUIRE(get_arguments(env, info, 1, &argument) && get_whole_number(env, argument, VMADDR_PORT_ANY - 1, &port),
          "vsockBind(port): a whole number below 2^32 - 1");
  return make_number(env, bind_port(port));
}

static napi_value vsock_listen(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int descriptor;
  uint32_t backlog;
  REQUIRE(get_arguments(env, info, 2, arguments) && get_descriptor(env, arguments[0], &descriptor) &&
              get_whole_number(env, arguments[1], INT_MAX, &backlog),
          "vsockListen(descriptor, backlog)");
  return make_number(env, errno_or(listen(descriptor, (int)backlog)));
}

static napi_value vsock_peer_cid(napi_env env, napi_callback_info info) {
  napi_value argument;
  int descriptor;
  REQUIRE(get_arguments(env, info, 1, &argument) && get_descriptor(env, argument, &descriptor), "vsockPeerCid(descriptor)");
  struct sockaddr_vm address;
  socklen_t length = sizeof address;
  if (getpeername(descriptor, (struct sockaddr *)&address, &length) < 0) return make_number(env, -errno);
  // Another family's name in this struct would be read as a CID that it is not.
  if (length < sizeof address || address.svm_family != AF_VSOCK) return make_number(env, -EAFNOSUPPORT);
  return make_number(env, address.svm_cid);
}

static napi_value vsock_local_cid(napi_env env, napi_callback_info info) {
  (void)info;
  unsigned int cid = 0;
  const int descriptor = open("/dev/vsock", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return make_number(env, -errno);
  const int result = errno_or(ioctl(descriptor, IOCTL_VM_SOCKETS_GET_LOCAL_CID, &cid));
  close(descriptor);
  return make_number(env, result < 0 ? result : (double)cid);
}

#else

#define vsock_bind unsupported
#define vsock_listen unsupported
#define vsock_peer_cid unsupported
#define vsock_local_cid unsupported

#endif

bool export_vsock(napi_env env, napi_value exports) {
  static const struct named_function functions[] = {
      {"vsockBind", vsock_bind},
      {"vsockListen", vsock_listen},
      {"vsockPeerCid", vsock_peer_cid},
      {"vsockLocalCid", vsock_local_cid},
  };
  return export_functions(env, exports, functions, sizeof functions / sizeof *functions);
}
