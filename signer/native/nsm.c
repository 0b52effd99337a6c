// See nsm.h. One exchange with the device on a thread of libuv's pool: the driver sleeps until the hypervisor has
// answered. Bytes in, bytes out: nothing here knows CBOR. Answers may be random bytes that become keys, so no copy
// outlives the exchange. System call: ioctl.
#include "nsm.h"

#include "arguments.h"

#ifdef __linux__

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "memory.h"

/** The driver's limits (linux/drivers/misc/nsm.c: NSM_REQUEST_MAX_SIZE, NSM_RESPONSE_MAX_SIZE). */
enum { MAX_REQUEST_BYTES = 0x1000, MAX_RESPONSE_BYTES = 0x3000 };

/** linux/include/uapi/linux/nsm.h: struct nsm_raw of two struct nsm_iovec. */
struct nsm_raw {
  uint64_t request_address, request_length;
  uint64_t response_address, response_length;
};
#define NSM_IOCTL_RAW _IOWR(0x0A, 0x0, struct nsm_raw)
_Static_assert(NSM_IOCTL_RAW == 0xC0200A00, "the number of the NSM's ioctl");

struct exchange {
  napi_async_work work;
  napi_deferred deferred;
  int descriptor;
  int error;
  size_t request_length, response_length;
  unsigned char request[MAX_REQUEST_BYTES];
  unsigned char response[MAX_RESPONSE_BYTES];
};

static void free_exchange(struct exchange *exchange) {
  wipe(exchange, sizeof *exchange);
  free(exchange);
}

/** On a thread of libuv's pool. */
static void execute_exchange(napi_env env, void *data) {
  (void)env;
  struct exchange *exchange = data;
  struct nsm_raw raw = {
      .request_address = (uintptr_t)exchange->request,
      .request_length = exchange->request_length,
      .response_address = (uintptr_t)exchange->response,
      .response_length = sizeof exchange->response,
  };
  exchange->error = ioctl(exchange->descriptor, NSM_IOCTL_RAW, &raw) < 0 ? errno : 0;
  if (exchange->error == 0 && raw.response_length > sizeof exchange->response) exchange->error = EPROTO;
  exchange->response_length = exchange->error == 0 ? (size_t)raw.response_length : 0;
}

static void reject_exchange(napi_env env, napi_deferred deferred, int error) {
  napi_value message, exception, number;
  if (napi_create_string_utf8(env, strerror(error), NAPI_AUTO_LENGTH, &message) == napi_ok &&
      napi_create_error(env, NULL, message, &exception) == napi_ok &&
      napi_create_int32(env, -error, &number) == napi_ok &&
      napi_set_named_property(env, exception, "errno", number) == napi_ok) {
    napi_reject_deferred(env, deferred, exception);
  }
}

static void complete_exchange(napi_env env, napi_status status, void *data) {
  struct exchange *exchange = data;
  napi_value response;
  const int error = status == napi_ok ? exchange->error : ECANCELED;
  if (error != 0) {
    reject_exchange(env, exchange->deferred, error);
  } else if (napi_create_buffer_copy(env, exchange->response_length, exchange->response, NULL, &response) == napi_ok) {
    napi_resolve_deferred(env, exchange->deferred, response);
  } else {
    reject_exchange(env, exchange->deferred, ENOMEM);
  }
  napi_delete_async_work(env, exchange->work);
  free_exchange(exchange);
}

static napi_status start_exchange(napi_env env, struct exchange *exchange, napi_value *promise) {
  napi_value name;
  napi_status status = napi_create_string_utf8(env, "strongroom.nsmRequest", NAPI_AUTO_LENGTH, &name);
  if (status == napi_ok) status = napi_create_promise(env, &exchange->deferred, promise);
  if (status == napi_ok) {
    status = napi_create_async_work(env, NULL, name, execute_exchange, complete_exchange, exchange, &exchange->work);
  }
  if (status == napi_ok) status = napi_queue_async_work(env, exchange->work);
  return status;
}

static napi_value nsm_request(napi_env env, napi_callback_info info) {
  napi_value arguments[2], promise;
  int descriptor;
  size_t length = 0;
  REQUIRE(get_arguments(env, info, 2, arguments) && get_descriptor(env, arguments[0], &descriptor),
          "nsmRequest(descriptor, request)");
  const unsigned char *request = get_elements(env, arguments[1], napi_uint8_array, &length);
  REQUIRE(request != NULL && length >= 1 && length <= MAX_REQUEST_BYTES, "nsmRequest: a request of 1 to 4096 bytes");

  struct exchange *exchange = calloc(1, sizeof *exchange);
  if (exchange == NULL) return throw_refusal(env, "no memory for an exchange with the NSM");
  exchange->descriptor = descriptor;
  exchange->request_length = length;
  memcpy(exchange->request, request, length);
  if (start_exchange(env, exchange, &promise) != napi_ok) {
    free_exchange(exchange);
    REQUIRE(false, "nsmRequest: the exchange cannot be queued");
  }
  return promise;
}

#else

static napi_value nsm_request(napi_env env, napi_callback_info info) {
  (void)info;
  return throw_refusal(env, "unsupported platform: the NSM needs Linux");
}

#endif

bool export_nsm(napi_env env, napi_value exports) {
  static const struct named_function functions[] = {{"nsmRequest", nsm_request}};
  return export_functions(env, exports, functions, sizeof functions / sizeof *functions);
}
