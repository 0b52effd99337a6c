// `make check-proofs`: the C that reads what a parent, a device or a kernel says, under the bounded model checker
// ESBMC. What they say is arbitrary: every content of up to PROOF_BYTES bytes, in every division into pieces, with an
// interruption, and every outcome of every call. A step that refuses ends the path, because in an image it ends the
// enclave. Checked are every access, every overflow, the assertions below, and that no loop goes on beyond the bound.
#ifndef PROOF_OF_ADDON
#include "proof.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "eif/init/heartbeat.h"
#include "eif/init/report.h"
#include "eif/init/settings.c"
#include "eif/init/text.h"

#undef open
#undef close
#undef read
#undef write

enum { DESCRIPTOR = 1000, HEARTBEAT_BYTE = 0xb7 };

int nondet_int(void);
unsigned char nondet_uchar(void);
void __ESBMC_assume(_Bool);
void __ESBMC_assert(_Bool, const char *);

static unsigned given;
static int open_files;
static int interruptions;
static _Bool answered;

int input_open(const char *path, int flags, ...) {
  (void)path;
  (void)flags;
  if (nondet_int()) {
    errno = ENOENT;
    return -1;
  }
  open_files++;
  return DESCRIPTOR;
}

int input_close(int file) {
  __ESBMC_assert(file == DESCRIPTOR && open_files > 0, "closed once");
  open_files--;
  return 0;
}

ssize_t input_read(int file, void *bytes, size_t length) {
  __ESBMC_assert(file == DESCRIPTOR, "an open file");
  if (interruptions < 1 && nondet_int()) {
    interruptions++;
    errno = EINTR;
    return -1;
  }
  const int count = nondet_int();
  __ESBMC_assume(count >= 0 && (size_t)count <= length && given + (unsigned)count <= PROOF_BYTES);
  for (int at = 0; at < count; at++) ((unsigned char *)bytes)[at] = nondet_uchar();
  given += (unsigned)count;
  return count;
}

ssize_t input_write(int file, const void *bytes, size_t length) {
  (void)bytes;
  __ESBMC_assert(file == DESCRIPTOR, "an open file");
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
  if (nondet_int()) return -1;
  open_files++;
  return DESCRIPTOR;
}

int input_setsockopt(int stream, int level, int name, const void *value, socklen_t length) {
  (void)stream;
  (void)level;
  (void)name;
  (void)value;
  (void)length;
  return nondet_int() ? -1 : 0;
}

int input_connect(int stream, const struct sockaddr *address, socklen_t length) {
  (void)stream;
  (void)address;
  (void)length;
  return nondet_int() ? -1 : 0;
}

ssize_t input_send(int stream, const void *bytes, size_t length, int flags) {
  (void)stream;
  (void)bytes;
  (void)flags;
  return nondet_int() ? -1 : (ssize_t)length;
}

ssize_t input_recv(int stream, void *bytes, size_t length, int flags) {
  (void)stream;
  (void)flags;
  const int got = nondet_int();
  __ESBMC_assume(got >= -1 && got <= (int)length);
  if (got == 1) *(unsigned char *)bytes = nondet_uchar();
  answered = got == 1 && *(unsigned char *)bytes == HEARTBEAT_BYTE;
  return got;
}

void report(const char *format, ...) { (void)format; }

void fail(const char *format, ...) {
  (void)format;
  __ESBMC_assume(0);
  for (;;) {
  }
}

// Of the C library, what the checker has no model of; as POSIX.1-2024 says.

char *strtok_r(char *text, const char *separators, char **rest) {
  char *at = text != NULL ? text : *rest;
  while (*at != '\0' && strchr(separators, *at) != NULL) at++;
  char *const word = at;
  while (*at != '\0' && strchr(separators, *at) == NULL) at++;
  const _Bool is_word = at != word;
  if (*at != '\0') *at++ = '\0';
  *rest = at;
  return is_word ? word : NULL;
}

size_t strspn(const char *text, const char *accepted) {
  size_t length = 0;
  while (text[length] != '\0' && strchr(accepted, text[length]) != NULL) length++;
  return length;
}

// ------------------------------------------------------------------------------------------------------------ proofs

void prove_text(void) {
  char text[PROOF_BYTES + 2];
  const int size = nondet_int();
  __ESBMC_assume(size >= 1 && size <= (int)sizeof text);
  const ssize_t length = read_text("/proc/cmdline", text, (size_t)size);
  __ESBMC_assert(length == -1 || (length >= 0 && length < size && text[length] == '\0'), "ended within its room");
  __ESBMC_assert(open_files == 0, "closed");
}

void prove_cid(void) {
  char digits[MAX_VALUE_BYTES];
  const int length = nondet_int();
  __ESBMC_assume(length >= 0 && length <= PROOF_BYTES);
  for (int at = 0; at < length; at++) digits[at] = (char)nondet_uchar();
  digits[length] = '\0';
  __ESBMC_assert(parse_cid(digits) != UINT32_MAX, "a CID of one machine");
}

void prove_heartbeat(void) {
  send_heartbeat(DEFAULT_PARENT_CID);
  __ESBMC_assert(answered, "it goes on only with the parent's answer");
  __ESBMC_assert(open_files == 0, "closed");
}

#else

// The security module's driver: it writes no more than its room, and states any length.
#include <stdint.h>
#include <sys/ioctl.h>

static int input_ioctl(int descriptor, unsigned long request, void *argument);
#define ioctl input_ioctl
#include "signer/native/nsm.c"
#undef ioctl

int nondet_int(void);
uint64_t nondet_ulong(void);
void __ESBMC_assume(_Bool);
void __ESBMC_assert(_Bool, const char *);

static int input_ioctl(int descriptor, unsigned long request, void *argument) {
  (void)descriptor;
  (void)request;
  ((struct nsm_raw *)argument)->response_length = nondet_ulong();
  return nondet_int() ? -1 : 0;
}

void prove_exchange(void) {
  static struct exchange exchange;
  exchange.request_length = nondet_ulong();
  __ESBMC_assume(exchange.request_length >= 1 && exchange.request_length <= MAX_REQUEST_BYTES);
  execute_exchange(NULL, &exchange);
  __ESBMC_assert(exchange.response_length <= MAX_RESPONSE_BYTES, "no byte behind the answer is read");
}

#endif
