// PID 1 of the image: brings the system up, starts the signer, reaps, and restarts when the signer ends (enclave.md, Boot). The parent
// instance sees a restart as the end of the enclave; an enclave without its signer has nothing left to do.
// It takes nothing from its arguments or environment, which the kernel fills from words of its command line. It forwards no signals:
// nobody in an enclave could send one.

#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "strongroom init: "

static void report_end(int status) {
  if (WIFEXITED(status)) report("the signer ended with exit status %d", WEXITSTATUS(status));
  else if (WIFSIGNALED(status)) report("the signer was killed by signal %d", WTERMSIG(status));
  else report("the signer ended with status 0x%x", (unsigned int)status);
}

int main(void) {
  if (getpid() != 1) {
    // Run by hand, on a host, it would restart that host.
    report("not the first process: refused");
    return 1;
  }
  mount_file_systems();
  open_console();
  set_up_kernel();
  limit_resources();
  load_modules();
  raise_loopback();
  await_entropy();
  const unsigned int cid = parent_cid();
  const int unsigned_evidence = states_unsigned_evidence();
  send_heartbeat(cid);
  const pid_t signer = start_signer(cid, unsigned_evidence);
  report("the signer has started");
  report_end(await_signer(signer));
  restart();
}

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

ssize_t read_text(const char *path, char *text, size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file == -1) return -1;
  size_t length = 0;
  while (length < size - 1) {
    const ssize_t got = read(file, text + length, size - 1 - length);
    if (got == -1 && errno == EINTR) continue;
    if (got == -1) fail("reading %s", path);
    if (got == 0) break;
    length += (size_t)got;
  }
  if (close(file) != 0) fail("closing %s", path);
  text[length] = '\0';
  return (ssize_t)length;
}
