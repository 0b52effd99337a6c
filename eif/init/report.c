// One line on the console, and the end of the enclave when a step cannot be done.

#include "report.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <termios.h>
#include <unistd.h>

#define PREFIX "strongroom init: "
#define DRAIN_SECONDS 2

static void nothing(int signal_number) { (void)signal_number; }

// What the console has not sent yet would be lost, and with it the reason. A console that never sends it holds up
// nothing: the alarm interrupts the wait.
static void drain_console(void) {
  struct sigaction interrupt = {.sa_handler = nothing};
  if (sigaction(SIGALRM, &interrupt, NULL) != 0) return;
  (void)alarm(DRAIN_SECONDS);
  (void)tcdrain(STDERR_FILENO);
  (void)alarm(0);
}

void restart(void) {
  drain_console();
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
