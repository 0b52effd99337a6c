// In place of Node in the guest of suite "init": tells what init has given it, one line a fact, and ends as /test/end
// says.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const char *const FILES[] = {
    "/proc/mounts", "/proc/modules", "/proc/sys/kernel/modules_disabled", "/proc/sys/kernel/io_uring_disabled",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/net/core/somaxconn",
};

static void tell_limit(const char *name, int resource) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0) exit(2);
  printf("node: limit %s %llu %llu\n", name, (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

static void tell_file(const char *path) {
  FILE *const file = fopen(path, "re");
  if (file == NULL) {
    printf("node: %s: none\n", path);
    return;
  }
  char line[512];
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    printf("node: %s: %s\n", path, line);
  }
  (void)fclose(file);
}

static void tell_loopback(void) {
  struct ifreq request = {.ifr_name = "lo"};
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control == -1 || ioctl(control, SIOCGIFFLAGS, &request) != 0) exit(3);
  printf("node: lo is %s\n", (request.ifr_flags & IFF_UP) != 0 ? "up" : "down");
  (void)close(control);
}

/** A child that leaves a process behind; whether that one is there in any form after it has ended. */
static void tell_orphan(void) {
  int ends[2];
  if (pipe(ends) != 0) exit(4);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t parent = getpid();
    const pid_t orphan = fork();
    if (orphan > 0) _exit(write(ends[1], &orphan, sizeof orphan) == sizeof orphan ? 0 : 5);
    while (getppid() == parent) (void)usleep(1000);
    _exit(getppid() == 1 ? 0 : 6);
  }
  pid_t orphan = 0;
  if (waitpid(child, NULL, 0) != child || read(ends[0], &orphan, sizeof orphan) != sizeof orphan) exit(7);
  // Until nobody has that number: what is not reaped keeps it.
  int looks = 0;
  while (kill(orphan, 0) == 0 && ++looks < 20000) (void)usleep(1000);
  printf("node: the orphan %s\n", errno == ESRCH ? "was reaped" : "is still there");
}

static void end_as_told(void) {
  char how[32] = "exit 7";
  FILE *const file = fopen("/test/end", "re");
  if (file != NULL && fgets(how, sizeof how, file) == NULL) exit(8);
  fflush(stdout);
  if (strncmp(how, "kill ", 5) == 0) {
    (void)kill(getpid(), atoi(how + 5));
    (void)pause();
  }
  exit(atoi(how + 5));
}

int main(int count, char *const arguments[]) {
  (void)setvbuf(stdout, NULL, _IOLBF, 4096);
  for (int at = 0; at < count; at++) printf("node: argument %s\n", arguments[at]);
  for (char **variable = environ; *variable != NULL; variable++) printf("node: variable %s\n", *variable);
  tell_limit("core", RLIMIT_CORE);
  tell_limit("files", RLIMIT_NOFILE);
  char input[64] = "";
  if (readlink("/proc/self/fd/0", input, sizeof input - 1) == -1) exit(9);
  printf("node: input %s\n", input);
  for (size_t at = 0; at < sizeof FILES / sizeof FILES[0]; at++) tell_file(FILES[at]);
  tell_loopback();
  tell_orphan();
  end_as_told();
}
