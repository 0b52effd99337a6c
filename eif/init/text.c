// Short texts of the kernel and of the image: its command line, its list of modules.

#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "report.h"

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
