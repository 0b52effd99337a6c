// One line on the console, and the end of the enclave when a step cannot be done.

#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#define PREFIX "strongroom init: "

void restart(void) {
  sync();
  (void)reboot(RB_AUTOBOOT);
  // Without the right to restart, the end of PID 1 is a kernel panic, which ends the enclave as well.
  _exit(1);
}

static void print_line(const char *format, va_list arguments, const char *reason) {
  char line[512];
  (void)vsnprintf(line, sizeof line, format, arguments);
  // A console that cannot be written to is no reason to stop.
  (void)dprintf(STDERR_FILENO, PREFIX "%s%s%s\n", line, reason == NULL ? "" : ": ", reason == NULL ? "" : reason);
}

void report(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_line(format, arguments, NULL);
  va_end(arguments);
}

void fail(const char *format, ...) {
  const char *reason = errno == 0 ? NULL : strerror(errno);
  va_list arguments;
  va_start(arguments, format);
  print_line(format, arguments, reason);
  va_end(arguments);
  restart();
}
