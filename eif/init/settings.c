// Limits that the signer inherits, and the one setting of the kernel's command line (which is measured, PCR1): `strongroom.parent_cid=N`.

#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define MAX_CMDLINE_BYTES 4096
#define PARENT_CID "strongroom.parent_cid="
/** More than the connections, files and workers of a signer at its limits. */
#define MAX_OPEN_FILES 65536

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

unsigned int parent_cid(void) {
  char cmdline[MAX_CMDLINE_BYTES];
  if (read_text("/proc/cmdline", cmdline, sizeof cmdline) == -1) fail("opening /proc/cmdline");
  unsigned int cid = DEFAULT_PARENT_CID;
  int found = 0;
  char *rest = NULL;
  for (char *word = strtok_r(cmdline, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
    if (strncmp(word, PARENT_CID, strlen(PARENT_CID)) != 0) continue;
    cid = parse_cid(word + strlen(PARENT_CID));
    found++;
  }
  if (found > 1) {
    errno = EINVAL;
    fail("%s is there %d times", PARENT_CID, found);
  }
  return cid;
}
