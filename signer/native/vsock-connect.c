// See vsock-connect.h. Waiting for a connect is on the caller's event loop, so it occupies no thread of libuv's pool.
// The caller that gets a descriptor owns it; one whose connect fails or is cancelled is closed here. System calls:
// socket, connect, getsockopt, getpeername, close.
#include "vsock-connect.h"

#include "arguments.h"
#include "descriptors.h"

#ifdef __linux__

#if !__has_include(<uv.h>)
#error "uv.h is missing: it comes with the pinned Node.js (npm ci, with optional packages)"
#endif

#include <errno.h>
#include <stdlib.h>
#include <uv.h>

#include "vsock-socket.h"

/** Distinguishes our external from any other that might be passed in its place. */
static const napi_type_tag CONNECTING_TAG = {0x2f6b8f0c57e14d39ULL, 0x8a1d40c35be97f62ULL};

/** A connect under way. The poll handle and JavaScript's external keep it alive. */
struct connecting {
  uv_poll_t poll;
  napi_env env;
  napi_ref done;
  napi_async_context context;
  napi_async_cleanup_hook_handle hook;
  int descriptor;
  bool ended;     // done was called, or vsockCancel was
  bool closed;    // libuv has let go of the poll handle
  bool collected; // JavaScript has let go of the external
};

static void settle_connecting(struct connecting *connecting) {
  if (connecting->closed && connecting->collected) free(connecting);
}

static void poll_closed(uv_handle_t *handle) {
  struct connecting *connecting = handle->data;
  connecting->closed = true;
  napi_delete_reference(connecting->env, connecting->done);
  napi_async_destroy(connecting->env, connecting->context);
  if (connecting->hook != NULL) napi_remove_async_cleanup_hook(connecting->hook);
  settle_connecting(connecting);
}

/** Nothing watches the descriptor any more; it is the caller's, or closed already. */
static void end_connecting(struct connecting *connecting) {
  connecting->ended = true;
  uv_poll_stop(&connecting->poll);
  uv_close((uv_handle_t *)&connecting->poll, poll_closed);
}

static void cancel_connecting(struct connecting *connecting) {
  if (connecting->ended) return;
  end_connecting(connecting);
  close(connecting->descriptor);
}

/** The environment ends (a worker that is stopped): its loop must not find an open handle. */
static void environment_ends(napi_async_cleanup_hook_handle hook, void *data) {
  (void)hook;
  cancel_connecting(data);
}

static void call_done(struct connecting *connecting, int result) {
  napi_env env = connecting->env;
  napi_handle_scope scope;
  napi_value done, global, argument, error;
  bool is_pending = false;
  if (napi_open_handle_scope(env, &scope) != napi_ok) {
    if (result >= 0) close(result);
    return;
  }
  argument = make_number(env, result);
  if (argument != NULL && napi_get_reference_value(env, connecting->done, &done) == napi_ok &&
      napi_get_global(env, &global) == napi_ok) {
    napi_make_callback(env, connecting->context, global, done, 1, &argument, NULL);
  }
  if (napi_is_exception_pending(env, &is_pending) == napi_ok && is_pending &&
      napi_get_and_clear_last_exception(env, &error) == napi_ok) {
    napi_fatal_exception(env, error);
  }
  napi_close_handle_scope(env, scope);
}

/** libuv reports an error on the socket as UV_EBADF whatever it is: SO_ERROR has the reason. */
static int outcome_of(int descriptor, int status) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) < 0) return -errno;
  if (error != 0) return -error;
  if (status < 0) return status;
  struct sockaddr_vm peer;
  length = sizeof peer;
  return errno_or(getpeername(descriptor, (struct sockaddr *)&peer, &length)); // ENOTCONN: writable for another reason
}

static void poll_ready(uv_poll_t *poll, int status, int events) {
  (void)events;
  struct connecting *connecting = poll->data;
  const int descriptor = connecting->descriptor;
  const int outcome = outcome_of(descriptor, status);
  end_connecting(connecting);
  if (outcome < 0) close(descriptor);
  call_done(connecting, outcome < 0 ? outcome : descriptor);
}

static void collect_connecting(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  struct connecting *connecting = data;
  connecting->collected = true;
  settle_connecting(connecting);
}

/** A non-blocking socket whose connect has begun (-EINPROGRESS in `outcome`), is done (0) or has failed. */
static int begin_connect(uint32_t cid, uint32_t port, int *outcome) {
  const struct sockaddr_vm address = vsock_address(cid, port);
  const int descriptor = new_vsock_socket();
  if (descriptor < 0) {
    *outcome = descriptor;
    return -1;
  }
  *outcome = errno_or(connect(descriptor, (const struct sockaddr *)&address, sizeof address));
  if (*outcome != 0 && *outcome != -EINPROGRESS) close(descriptor);
  return descriptor;
}

/** Watch the descriptor. Until this has succeeded nothing of `connecting` is known to libuv or JavaScript. */
static int watch(napi_env env, struct connecting *connecting, napi_value done) {
  uv_loop_t *loop = NULL;
  napi_value name;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) return -ENOSYS;
  if (napi_create_reference(env, done, 1, &connecting->done) != napi_ok) return -ENOMEM;
  if (napi_create_string_utf8(env, "strongroom.vsockConnect", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_async_init(env, NULL, name, &connecting->context) != napi_ok) {
    napi_delete_reference(env, connecting->done);
    return -ENOMEM;
  }
  const int result = uv_poll_init(loop, &connecting->poll, connecting->descriptor);
  if (result < 0) {
    napi_delete_reference(env, connecting->done);
    napi_async_destroy(env, connecting->context);
    return result;
  }
  connecting->poll.data = connecting;
  return 0;
}

/**
 * @returns 0, with `external` made and everything under way; or an error, with nothing left behind but the descriptor
 */
static int start_connecting(napi_env env, int descriptor, napi_value done, napi_value *external) {
  struct connecting *connecting = calloc(1, sizeof *connecting);
  if (connecting == NULL) return -ENOMEM;
  connecting->env = env;
  connecting->descriptor = descriptor;
  int result = watch(env, connecting, done);
  if (result < 0) {
    free(connecting);
    return result;
  }
  if (napi_add_async_cleanup_hook(env, environment_ends, connecting, &connecting->hook) != napi_ok) {
    connecting->hook = NULL;
    result = -ENOMEM;
  }
  if (result == 0) result = uv_poll_start(&connecting->poll, UV_WRITABLE, poll_ready);
  bool is_held = false; // by JavaScript; otherwise poll_closed frees it
  if (result == 0) {
    is_held = napi_create_external(env, connecting, collect_connecting, NULL, external) == napi_ok;
    if (!is_held || napi_type_tag_object(env, *external, &CONNECTING_TAG) != napi_ok) result = -ENOMEM;
  }
  if (result < 0) {
    connecting->collected = !is_held;
    end_connecting(connecting);
  }
  return result;
}

static napi_value vsock_connect(napi_env env, napi_callback_info info) {
  napi_value arguments[3], external = NULL;
  napi_valuetype type;
  uint32_t cid, port;
  REQUIRE(get_arguments(env, info, 3, arguments) && get_whole_number(env, arguments[0], VMADDR_CID_ANY - 1, &cid) &&
              get_whole_number(env, arguments[1], VMADDR_PORT_ANY - 1, &port) &&
              napi_typeof(env, arguments[2], &type) == napi_ok && type == napi_function,
          "vsockConnect(cid, port, done): whole numbers below 2^32 - 1 and a function");

  int outcome;
  const int descriptor = begin_connect(cid, port, &outcome);
  if (outcome == 0) return make_number(env, descriptor);
  if (outcome != -EINPROGRESS) return make_number(env, outcome);
  outcome = start_connecting(env, descriptor, arguments[2], &external);
  return outcome < 0 ? make_number(env, give_up(descriptor, outcome)) : external;
}

static napi_value vsock_cancel(napi_env env, napi_callback_info info) {
  napi_value argument;
  bool is_ours = false;
  void *connecting = NULL;
  REQUIRE(get_arguments(env, info, 1, &argument) &&
              napi_check_object_type_tag(env, argument, &CONNECTING_TAG, &is_ours) == napi_ok && is_ours &&
              napi_get_value_external(env, argument, &connecting) == napi_ok,
          "vsockCancel(connecting): what vsockConnect returned");
  cancel_connecting(connecting);
  return NULL;
}

#else

#define vsock_connect unsupported
#define vsock_cancel unsupported

#endif

bool export_vsock_connect(napi_env env, napi_value exports) {
  static const struct named_function functions[] = {
      {"vsockConnect", vsock_connect},
      {"vsockCancel", vsock_cancel},
  };
  return export_functions(env, exports, functions, sizeof functions / sizeof *functions);
}
