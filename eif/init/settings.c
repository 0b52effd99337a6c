// Settings of the kernel, limits that the signer inherits, and the two settings of the kernel's command line (which is
// measured, PCR1): `strongroom.parent_cid=N` and `strongroom.evidence=unsigned`.

#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "report.h"
#include "text.h"

/** The parent instance, unless the kernel's command line says otherwise (AWS, Nitro Enclaves: vsock). */
#define DEFAULT_PARENT_CID 3u
#define MAX_CMDLINE_BYTES 4096
#define PARENT_CID "strongroom.parent_cid="
#define EVIDENCE "strongroom.evidence="
#define MAX_VALUE_BYTES 64
/** More than the connections, files and workers of a signer at its limits. */
#define MAX_OPEN_FILES 65536

/** No accept queue is longer, whatever its listener asks for (signer/native/vsock.ts: 4096). listen(2). */
#define MAX_ACCEPT_QUEUE "/proc/sys/net/core/somaxconn"
/** Since Linux 6.6; 2: no process makes a ring any more. */
#define IO_URING "/proc/sys/kernel/io_uring_disabled"

/** A kernel that does not have the setting is left as it is. @returns 0, or -1 and errno */
static int set_kernel(const char *path, const char *value) {
  const int setting = open(path, O_WRONLY | O_CLOEXEC);
  if (setting == -1) return errno == ENOENT ? 0 : -1;
  const size_t length = strlen(value);
  errno = 0;
  const ssize_t written = write(setting, value, length);
  const int reason = written == -1 ? errno : EIO;
  if (close(setting) != 0) return -1;
  errno = reason;
  return written == (ssize_t)length ? 0 : -1;
}

void set_up_kernel(void) {
  // Before Linux 5.4 it is 128, and a vsock connection that finds the queue full is reset at once. Without it fewer
  // connect at the same time, and nothing else: no reason to stop.
  if (set_kernel(MAX_ACCEPT_QUEUE, "4096") != 0) report("accept queues keep their limit: " MAX_ACCEPT_QUEUE ": %s", strerror(errno));
  // What is done through a ring does not pass through the signer's filter of system calls (docs/security.md). Node does
  // without one.
  if (set_kernel(IO_URING, "2") != 0) fail("disabling io_uring");
}

static void limit(int resource, rlim_t value, const char *name) {
  const struct rlimit both = {.rlim_cur = value, .rlim_max = value};
  if (setrlimit(resource, &both) != 0) fail("limiting %s", name);
}

void limit_resources(void) {
  // The memory of the signer holds keys.
  limit(RLIMIT_CORE, 0, "core dumps");
  limit(RLIMIT_NOFILE, MAX_OPEN_FILES, "open files");
}

/** Decimal digits and nothing else; CIDs are 32 bits, and the highest means "any". */
static unsigned int parse_cid(const char *digits) {
  unsigned long long value = 0;
  const size_t length = strlen(digits);
  if (length == 0 || length > 10 || strspn(digits, "0123456789") != length) {
    errno = EINVAL;
    fail("%s%s", PARENT_CID, digits);
  }
  for (const char *digit = digits; *digit != '\0'; digit++) value = value * 10 + (unsigned long long)(*digit - '0');
  if (value >= 0xffffffffULL) {
    errno = ERANGE;
    fail("%s%s", PARENT_CID, digits);
  }
  return (unsigned int)value;
}

/**
 * @param name with its `=`
 * @returns whether the kernel's command line has such a word; ends the boot when it has several
 */
static int setting(const char *name, char value[MAX_VALUE_BYTES]) {
  char cmdline[MAX_CMDLINE_BYTES];
  if (read_text("/proc/cmdline", cmdline, sizeof cmdline) == -1) fail("opening /proc/cmdline");
  int found = 0;
  char *rest = NULL;
  for (char *word = strtok_r(cmdline, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
    if (strncmp(word, name, strlen(name)) != 0) continue;
    (void)snprintf(value, MAX_VALUE_BYTES, "%s", word + strlen(name));
    found++;
  }
  if (found > 1) {
    errno = EINVAL;
    fail("%s is there %d times", name, found);
  }
  return found;
}

unsigned int parent_cid(void) {
  char digits[MAX_VALUE_BYTES];
  return setting(PARENT_CID, digits) ? parse_cid(digits) : DEFAULT_PARENT_CID;
}

int states_unsigned_evidence(void) {
  char value[MAX_VALUE_BYTES];
  if (!setting(EVIDENCE, value)) return 0;
  if (strcmp(value, "unsigned") != 0) {
    errno = EINVAL;
    fail("%s%s", EVIDENCE, value);
  }
  return 1;
}
