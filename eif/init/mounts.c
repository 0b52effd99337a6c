// The file systems of the kernel, and memory for what is written while it runs. Whatever is mounted already stays: a
// test's own first process mounts before it hands over to this one.

#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

struct file_system {
  const char *type;
  const char *target;
  mode_t mode;
  unsigned long flags;
  const char *options;
};

// Nothing in them is ever executed; bounded, because they take the enclave's memory.
static const struct file_system FILE_SYSTEMS[] = {
    {"proc", "/proc", 0555, MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
    {"sysfs", "/sys", 0555, MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
    {"devtmpfs", "/dev", 0755, MS_NOSUID | MS_NOEXEC, "mode=0755"},
    {"tmpfs", "/tmp", 01777, MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=16m"},
    {"tmpfs", "/run", 0755, MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=16m"},
};

/** A mounted file system is another device than the root's. */
static bool is_mounted(const char *target) {
  struct stat root;
  struct stat here;
  if (stat("/", &root) != 0) fail("stat /");
  if (stat(target, &here) != 0) fail("stat %s", target);
  return here.st_dev != root.st_dev;
}

void mount_file_systems(void) {
  for (size_t at = 0; at < sizeof FILE_SYSTEMS / sizeof FILE_SYSTEMS[0]; at++) {
    const struct file_system *one = &FILE_SYSTEMS[at];
    if (mkdir(one->target, one->mode) != 0 && errno != EEXIST) fail("creating %s", one->target);
    if (is_mounted(one->target)) continue;
    if (mount(one->type, one->target, one->type, one->flags, one->options) != 0 && errno != EBUSY)
      fail("mounting %s", one->target);
  }
}

void open_console(void) {
  for (int wanted = STDIN_FILENO; wanted <= STDERR_FILENO; wanted++) {
    if (fcntl(wanted, F_GETFD) != -1) continue;
    // open() gives the lowest number that is free, which is this one.
    int opened = open("/dev/console", O_RDWR | O_NOCTTY);
    if (opened == -1) opened = open("/dev/null", O_RDWR);
    if (opened != wanted) fail("opening the console");
  }
}
