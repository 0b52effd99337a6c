// Kernel modules that the image brings for its kernel, in the order of its list: finit_module(2). Those that the kernel
// has already are left alone; one that it refuses ends the boot. Afterwards no module can be loaded any more.

#include "modules.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.h"
#include "text.h"

#define LIST "/etc/strongroom/modules"
#define MAX_LIST_BYTES 4096

static void load_module(const char *path) {
  const int module = open(path, O_RDONLY | O_CLOEXEC);
  if (module == -1) fail("opening the kernel module %s", path);
  if (syscall(SYS_finit_module, module, "", 0) != 0 && errno != EEXIST) fail("loading the kernel module %s", path);
  if (close(module) != 0) fail("closing %s", path);
}

/** A kernel without modules has no such switch. */
static void forbid_more_modules(void) {
  const int disabled = open("/proc/sys/kernel/modules_disabled", O_WRONLY | O_CLOEXEC);
  if (disabled == -1 && errno == ENOENT) return;
  if (disabled == -1) fail("opening modules_disabled");
  // EPERM: it is set already, and stays set.
  if (write(disabled, "1", 1) != 1 && errno != EPERM) fail("forbidding more kernel modules");
  if (close(disabled) != 0) fail("closing modules_disabled");
}

void load_modules(void) {
  char list[MAX_LIST_BYTES];
  const ssize_t length = read_text(LIST, list, sizeof list);
  if (length == -1 && errno != ENOENT) fail("opening %s", LIST);
  if (length == MAX_LIST_BYTES - 1) {
    errno = E2BIG;
    fail("reading %s", LIST);
  }
  if (length > 0) {
    char *rest = NULL;
    for (char *path = strtok_r(list, "\n", &rest); path != NULL; path = strtok_r(NULL, "\n", &rest)) load_module(path);
  }
  forbid_more_modules();
}
