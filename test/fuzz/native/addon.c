// libFuzzer target: what the addon takes from the kernel in an enclave, for which a parent or a device stands: the
// answer of the security module, whatever length it states, and the name of a peer, whatever family and length it
// has. The first byte says which. The functions of the Node-API that they call are stand-ins, which read all that
// they are given.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static const uint8_t *rest;
static size_t left;

static uint64_t take_number(void) {
  uint64_t number = 0;
  const size_t count = left < sizeof number ? left : sizeof number;
  memcpy(&number, rest, count);
  rest += count;
  left -= count;
  return number;
}

static int input_ioctl(int descriptor, unsigned long request, void *argument);
static int input_getpeername(int descriptor, struct sockaddr *address, socklen_t *length);
#define ioctl input_ioctl
#define getpeername input_getpeername
#include "../../../signer/native/nsm.c"
#include "../../../signer/native/vsock.c"
#undef ioctl
#undef getpeername

static int input_ioctl(int descriptor, unsigned long request, void *argument) {
  (void)descriptor;
  if (request != NSM_IOCTL_RAW) return 0;
  struct nsm_raw *raw = argument;
  volatile uint8_t sum = 0;
  for (uint64_t at = 0; at < raw->request_length; at++) sum = (uint8_t)(sum + ((uint8_t *)(uintptr_t)raw->request_address)[at]);
  const uint64_t room = raw->response_length;
  raw->response_length = take_number();
  const size_t count = left < room ? left : room; // the driver writes no more than the room that it was given
  memcpy((uint8_t *)(uintptr_t)raw->response_address, rest, count);
  if (raw->response_length % 17 == 16) {
    errno = EINTR;
    return -1;
  }
  return 0;
}

static int input_getpeername(int descriptor, struct sockaddr *address, socklen_t *length) {
  (void)descriptor;
  const socklen_t named = (socklen_t)take_number();
  const size_t room = *length < left ? *length : left;
  memcpy(address, rest, room); // no more than the room, whatever the name's length
  *length = named;
  return named % 17 == 16 ? -1 : 0;
}

// ----------------------------------------------------------------------------------------------- the Node-API's side

static double made;
static size_t copied;

bool get_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *arguments) {
  (void)env;
  (void)info;
  memset(arguments, 0, count * sizeof *arguments);
  return true;
}
bool get_descriptor(napi_env env, napi_value value, int *descriptor) {
  (void)env;
  (void)value;
  *descriptor = 3;
  return true;
}
bool get_whole_number(napi_env env, napi_value value, uint32_t limit, uint32_t *number) {
  (void)env;
  (void)value;
  *number = limit;
  return true;
}
void *get_elements(napi_env env, napi_value value, napi_typedarray_type wanted, size_t *length) {
  (void)env;
  (void)value;
  (void)wanted;
  *length = left;
  return left == 0 ? NULL : (void *)(uintptr_t)rest;
}
napi_value make_number(napi_env env, double number) {
  (void)env;
  made = number;
  return NULL;
}
napi_value throw_refusal(napi_env env, const char *message) {
  (void)env;
  (void)message;
  return NULL;
}
bool export_functions(napi_env env, napi_value exports, const struct named_function *functions, size_t count) {
  (void)env;
  (void)exports;
  (void)functions;
  (void)count;
  return true;
}
napi_value unsupported(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  return NULL;
}
int errno_or(int result) { return result < 0 ? -errno : result; }
int give_up(int descriptor, int error) {
  (void)descriptor;
  return error;
}
struct sockaddr_vm vsock_address(uint32_t cid, uint32_t port) {
  return (struct sockaddr_vm){.svm_family = AF_VSOCK, .svm_cid = cid, .svm_port = port};
}
int new_vsock_socket(void) { return -ENOSYS; } // no vsock here
void wipe(void *bytes, size_t length) { memset(bytes, 0, length); }

napi_status napi_throw_type_error(napi_env env, const char *code, const char *message) {
  (void)env;
  (void)code;
  (void)message;
  return napi_ok;
}
napi_status napi_create_string_utf8(napi_env env, const char *text, size_t length, napi_value *result) {
  (void)env;
  (void)text;
  (void)length;
  *result = NULL;
  return napi_ok;
}
napi_status napi_create_error(napi_env env, napi_value code, napi_value message, napi_value *result) {
  (void)env;
  (void)code;
  (void)message;
  *result = NULL;
  return napi_ok;
}
napi_status napi_create_int32(napi_env env, int32_t value, napi_value *result) {
  (void)env;
  (void)value;
  *result = NULL;
  return napi_ok;
}
napi_status napi_set_named_property(napi_env env, napi_value object, const char *name, napi_value value) {
  (void)env;
  (void)object;
  (void)name;
  (void)value;
  return napi_ok;
}
napi_status napi_reject_deferred(napi_env env, napi_deferred deferred, napi_value value) {
  (void)env;
  (void)deferred;
  (void)value;
  return napi_ok;
}
napi_status napi_resolve_deferred(napi_env env, napi_deferred deferred, napi_value value) {
  (void)env;
  (void)deferred;
  (void)value;
  return napi_ok;
}
/** Reads all of it, as Node does. */
napi_status napi_create_buffer_copy(napi_env env, size_t length, const void *bytes, void **copy, napi_value *result) {
  (void)env;
  (void)copy;
  void *read = malloc(length == 0 ? 1 : length);
  if (read == NULL) abort();
  memcpy(read, bytes, length);
  free(read);
  copied = length;
  *result = NULL;
  return napi_ok;
}
napi_status napi_create_promise(napi_env env, napi_deferred *deferred, napi_value *promise) {
  (void)env;
  *deferred = NULL;
  *promise = NULL;
  return napi_ok;
}
static napi_async_execute_callback execute;
static napi_async_complete_callback complete;
static void *work_data;
napi_status napi_create_async_work(napi_env env, napi_value resource, napi_value name, napi_async_execute_callback executes,
                                   napi_async_complete_callback completes, void *data, napi_async_work *work) {
  (void)env;
  (void)resource;
  (void)name;
  execute = executes;
  complete = completes;
  work_data = data;
  *work = NULL;
  return napi_ok;
}
napi_status napi_queue_async_work(napi_env env, napi_async_work work) {
  (void)env;
  (void)work;
  return napi_ok;
}
napi_status napi_delete_async_work(napi_env env, napi_async_work work) {
  (void)env;
  (void)work;
  return napi_ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  rest = data + 1;
  left = size - 1;
  if (data[0] % 2 == 0) {
    made = 0;
    (void)vsock_peer_cid(NULL, NULL);
    if (made > UINT32_MAX) abort();
    return 0;
  }
  work_data = NULL;
  copied = 0;
  (void)nsm_request(NULL, NULL); // the bytes are the request, then the answer
  if (work_data == NULL) return 0;
  execute(NULL, work_data);
  complete(NULL, napi_ok, work_data);
  if (copied > MAX_RESPONSE_BYTES) abort();
  return 0;
}
