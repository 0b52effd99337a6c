// See descriptors.h. Unix sockets that Node makes its own streams and servers of, before a vsock descriptor takes their
// place. System calls: socketpair, socket, bind, dup3, close.
#include "descriptors.h"

#include <errno.h>
#include <unistd.h>

#include "arguments.h"

int errno_or(int result) {
  return result < 0 ? -errno : result;
}

int give_up(int descriptor, int error) {
  close(descriptor);
  return error;
}

napi_value unsupported(napi_env env, napi_callback_info info) {
  (void)info;
  return throw_refusal(env, "unsupported platform: vsock needs Linux");
}

#ifdef __linux__

#include <fcntl.h>
#include <sys/socket.h>

static napi_value unix_stream(napi_env env, napi_callback_info info) {
  (void)info;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return make_number(env, -errno);
  close(pair[1]);
  return make_number(env, pair[0]);
}

/**
 * Bound to a name the kernel chooses in the abstract namespace (unix(7), autobind): nothing is left in a file system.
 */
static napi_value unix_listener(napi_env env, napi_callback_info info) {
  (void)info;
  const struct sockaddr unnamed = {.sa_family = AF_UNIX};
  const int descriptor = errno_or(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (descriptor < 0) return make_number(env, descriptor);
  if (bind(descriptor, &unnamed, sizeof unnamed.sa_family) == 0) return make_number(env, descriptor);
  return make_number(env, give_up(descriptor, -errno));
}

static napi_value replace_descriptor(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  int source, target;
  REQUIRE(get_arguments(env, info, 2, arguments) && get_descriptor(env, arguments[0], &source) &&
              get_descriptor(env, arguments[1], &target),
          "replaceDescriptor(source, target)");
  return make_number(env, errno_or(dup3(source, target, O_CLOEXEC)));
}

#else

#define unix_stream unsupported
#define unix_listener unsupported
#define replace_descriptor unsupported

#endif

bool export_descriptors(napi_env env, napi_value exports) {
  static const struct named_function functions[] = {
      {"unixStream", unix_stream},
      {"unixListener", unix_listener},
      {"replaceDescriptor", replace_descriptor},
  };
  return export_functions(env, exports, functions, sizeof functions / sizeof *functions);
}
