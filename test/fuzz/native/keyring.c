// libFuzzer target: a keyring under any order of adding, removing, pinning, unpinning and wiping, with handles that
// were given and handles that never were. What is live is counted beside it: a pinned secret is the one that was
// added, until its last pin is gone, and no stale handle finds a key. All keys are TEST keys.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../../signer/native/keyring.h"

enum { MAX_KEYS = 64, MAX_PINS = 64 };

struct known {
  uint64_t handle;
  unsigned char secret[SECRET_KEY_BYTES];
  int is_live;
};
struct pin {
  const blst_scalar *secret;
  unsigned char expected[SECRET_KEY_BYTES];
  uint32_t slot;
};

static const struct known *find_known(const struct known *keys, size_t count, uint64_t handle) {
  for (size_t at = 0; at < count; at++) {
    if (keys[at].is_live && keys[at].handle == handle) return &keys[at];
  }
  return NULL;
}

static void expect_secret(const struct pin *pin) {
  unsigned char bytes[SECRET_KEY_BYTES];
  blst_bendian_from_scalar(bytes, pin->secret);
  if (memcmp(bytes, pin->expected, sizeof bytes) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct keyring *keyring = keyring_open(LOCK_OFF);
  if (keyring == NULL) abort();
  struct known keys[MAX_KEYS];
  struct pin pins[MAX_PINS];
  size_t key_count = 0, pin_count = 0;
  for (size_t at = 0; at + 1 < size; at += 2) {
    const uint8_t argument = data[at + 1];
    // One that was given, or one like it.
    uint64_t handle = key_count == 0 ? argument : keys[argument % key_count].handle;
    if (data[at] & 0x80) handle ^= (uint64_t)1 << (argument % 64);
    switch (data[at] % 5) {
      case 0: {
        if (key_count == MAX_KEYS) break;
        struct known *key = &keys[key_count];
        memset(key->secret, argument == 0xff ? 0xff : 0, sizeof key->secret);
        key->secret[SECRET_KEY_BYTES - 1] = argument;
        const enum keyring_result result = keyring_add(keyring, key->secret, &key->handle);
        if ((result == KEYRING_ADDED) != (argument != 0 && argument != 0xff)) abort();
        if (result != KEYRING_ADDED) break;
        if (key->handle == 0 || find_known(keys, key_count, key->handle) != NULL) abort();
        key->is_live = 1;
        key_count += 1;
        break;
      }
      case 1:
        keyring_remove(keyring, handle);
        for (size_t key = 0; key < key_count; key++) keys[key].is_live &= keys[key].handle != handle;
        break;
      case 2: {
        if (pin_count == MAX_PINS) break;
        const struct known *key = find_known(keys, key_count, handle);
        struct pin *pin = &pins[pin_count];
        pin->secret = keyring_pin(keyring, handle, &pin->slot);
        if ((pin->secret == NULL) != (key == NULL)) abort();
        if (key == NULL) break;
        memcpy(pin->expected, key->secret, sizeof pin->expected);
        pin_count += 1;
        break;
      }
      case 3:
        if (pin_count == 0) break;
        expect_secret(&pins[argument % pin_count]);
        keyring_unpin(keyring, pins[argument % pin_count].slot);
        pins[argument % pin_count] = pins[pin_count - 1];
        pin_count -= 1;
        break;
      default:
        if (argument % 8 != 0) break;
        keyring_wipe(keyring);
        for (size_t key = 0; key < key_count; key++) keys[key].is_live = 0;
    }
  }
  while (pin_count > 0) {
    expect_secret(&pins[--pin_count]);
    keyring_unpin(keyring, pins[pin_count].slot);
  }
  keyring_close(keyring);
  return 0;
}
