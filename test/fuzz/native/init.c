// libFuzzer target: what the first process of an image reads. The first byte says which: the kernel's command line,
// the list of modules, the name of the random generator and its bytes, or the parent's answer to the heartbeat. The
// second says in what pieces the kernel gives it. A step that refuses leaves by a jump, because in an image it ends
// the enclave.
#include "init.h"

#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../../eif/init/entropy.h"
#include "../../../eif/init/heartbeat.h"
#include "../../../eif/init/modules.h"
#include "../../../eif/init/report.h"
#include "../../../eif/init/settings.h"

#undef open
#undef close
#undef read
#undef write

enum { DESCRIPTOR = 1000, HEARTBEAT_BYTE = 0xb7, DEFAULT_CID = 3, MAX_STEPS = 4096 };

static const uint8_t *rest;
static size_t left;
static uint8_t pieces;
static jmp_buf refused;
static int open_files;
static int answered;
static int steps;

static uint8_t take_byte(void) {
  if (left == 0) return 0;
  left -= 1;
  return *rest++;
}

/** A kernel that interrupts for ever is none. */
static void step(void) {
  if (++steps > MAX_STEPS) longjmp(refused, 1);
}

static ssize_t give(void *bytes, size_t length) {
  step();
  if (pieces % 16 == 15 && steps % 2 == 0) {
    errno = EINTR;
    return -1;
  }
  size_t count = left < length ? left : length;
  if (pieces % 16 != 0 && count > pieces % 16) count = pieces % 16;
  if (count > 0) memcpy(bytes, rest, count);
  rest += count;
  left -= count;
  return (ssize_t)count;
}

int input_open(const char *path, int flags, ...) {
  (void)path;
  (void)flags;
  if (pieces & 0x10) {
    errno = ENOENT;
    return -1;
  }
  open_files += 1;
  return DESCRIPTOR;
}

int input_close(int file) {
  if (file != DESCRIPTOR || open_files <= 0) abort(); // closed twice, or another
  open_files -= 1;
  return 0;
}

ssize_t input_read(int file, void *bytes, size_t length) {
  if (file != DESCRIPTOR) abort();
  return give(bytes, length);
}

ssize_t input_write(int file, const void *bytes, size_t length) {
  if (file != DESCRIPTOR) abort();
  volatile uint8_t sum = 0;
  for (size_t at = 0; at < length; at++) sum = (uint8_t)(sum + ((const uint8_t *)bytes)[at]); // all of it is readable
  return (ssize_t)length;
}

long input_syscall(long number, ...) {
  (void)number;
  return 0;
}

ssize_t input_getrandom(void *bytes, size_t length, unsigned int flags) {
  (void)flags;
  memset(bytes, 1, length);
  return (ssize_t)length;
}

int input_nanosleep(const struct timespec *wanted, struct timespec *remaining) {
  (void)wanted;
  (void)remaining;
  return 0;
}

int input_socket(int family, int type, int protocol) {
  (void)family;
  (void)type;
  (void)protocol;
  if (take_byte() & 1) return -1;
  open_files += 1;
  return DESCRIPTOR;
}

int input_setsockopt(int stream, int level, int name, const void *value, socklen_t length) {
  (void)level;
  (void)name;
  (void)value;
  (void)length;
  if (stream != DESCRIPTOR) abort();
  return 0;
}

int input_connect(int stream, const struct sockaddr *address, socklen_t length) {
  (void)address;
  (void)length;
  if (stream != DESCRIPTOR) abort();
  return take_byte() & 1 ? -1 : 0;
}

ssize_t input_send(int stream, const void *bytes, size_t length, int flags) {
  (void)flags;
  return take_byte() & 1 ? 0 : input_write(stream, bytes, length);
}

ssize_t input_recv(int stream, void *bytes, size_t length, int flags) {
  (void)stream;
  (void)flags;
  const ssize_t got = give(bytes, length);
  answered = got == 1 && *(uint8_t *)bytes == HEARTBEAT_BYTE;
  return got;
}

void report(const char *format, ...) { (void)format; }

void fail(const char *format, ...) {
  (void)format;
  longjmp(refused, 1);
}

void restart(void) { longjmp(refused, 1); }

static void run(uint8_t what) {
  switch (what % 4) {
    case 0: {
      // The same text for both: whoever finds a CID that is none, or "any", has found a fault.
      const uint8_t *const text = rest;
      const size_t length = left;
      if (parent_cid() == UINT32_MAX) abort();
      rest = text;
      left = length;
      const int is_unsigned = states_unsigned_evidence();
      if (is_unsigned && memmem(text, length, "strongroom.evidence=unsigned", 28) == NULL) abort();
      break;
    }
    case 1: load_modules(); break;
    case 2: await_entropy(); break;
    default:
      send_heartbeat(DEFAULT_CID);
      if (!answered) abort(); // it goes on only with the parent's answer
      if (open_files != 0) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  pieces = data[1];
  rest = data + 2;
  left = size - 2;
  open_files = answered = steps = 0;
  if (setjmp(refused) == 0) run(data[0]);
  return 0;
}
