// See arguments.h.
#include "arguments.h"

#include <limits.h>
#include <math.h>
#include <string.h>

bool export_functions(napi_env env, napi_value exports, const struct named_function *functions, size_t count) {
  for (size_t index = 0; index < count; index++) {
    const struct named_function *entry = &functions[index];
    napi_value function;
    if (napi_create_function(env, entry->name, NAPI_AUTO_LENGTH, entry->function, NULL, &function) != napi_ok) return false;
    if (napi_set_named_property(env, exports, entry->name, function) != napi_ok) return false;
  }
  return true;
}

napi_value throw_refusal(napi_env env, const char *message) {
  napi_throw_error(env, NULL, message);
  return NULL;
}

bool get_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *arguments) {
  size_t given = count;
  return napi_get_cb_info(env, info, &given, arguments, NULL, NULL) == napi_ok && given == count;
}

void *get_elements(napi_env env, napi_value value, napi_typedarray_type wanted, size_t *length) {
  bool is_typed_array = false;
  napi_typedarray_type type;
  void *data = NULL;
  if (napi_is_typedarray(env, value, &is_typed_array) != napi_ok || !is_typed_array) return NULL;
  if (napi_get_typedarray_info(env, value, &type, length, &data, NULL, NULL) != napi_ok) return NULL;
  return type == wanted ? data : NULL;
}

unsigned char *get_bytes(napi_env env, napi_value value, size_t length) {
  size_t actual = 0;
  unsigned char *bytes = get_elements(env, value, napi_uint8_array, &actual);
  return actual == length ? bytes : NULL;
}

bool get_whole_number(napi_env env, napi_value value, uint32_t limit, uint32_t *number) {
  double given;
  if (napi_get_value_double(env, value, &given) != napi_ok) return false;
  if (!(given >= 0 && given <= limit) || floor(given) != given) return false;
  *number = (uint32_t)given;
  return true;
}

bool get_descriptor(napi_env env, napi_value value, int *descriptor) {
  uint32_t number;
  if (!get_whole_number(env, value, INT_MAX, &number)) return false;
  *descriptor = (int)number;
  return true;
}

napi_value make_number(napi_env env, double number) {
  napi_value result;
  TRY(napi_create_double(env, number, &result));
  return result;
}

bool get_lock_policy(napi_env env, napi_value value, enum lock_policy *policy) {
  static const char *const names[] = {[LOCK_OFF] = "off", [LOCK_BEST_EFFORT] = "best_effort", [LOCK_REQUIRED] = "required"};
  char name[16];
  size_t length;
  if (napi_get_value_string_utf8(env, value, name, sizeof name, &length) != napi_ok) return false;
  for (int candidate = LOCK_OFF; candidate <= LOCK_REQUIRED; candidate++) {
    if (strcmp(name, names[candidate]) != 0) continue;
    *policy = (enum lock_policy)candidate;
    return true;
  }
  return false;
}
