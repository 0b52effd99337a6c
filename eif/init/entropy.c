// Waits until the kernel's random numbers are seeded, and stirs in the platform's when its generator is there: keys are
// made from them. random(7), getrandom(2).

#include "entropy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "report.h"
#include "text.h"

#define GENERATOR "/sys/class/misc/hw_random/rng_current"
#define NITRO_GENERATOR "nsm-hwrng\n"
#define STIRRED_BYTES 256
#define MAX_WAIT_STEPS 600
#define WAIT_STEP_NS 100000000L

/** Reads all of it: a generator may give fewer bytes at a time. */
static void read_generator(unsigned char *bytes, size_t size) {
  const int generator = open("/dev/hwrng", O_RDONLY | O_CLOEXEC);
  if (generator == -1) fail("opening /dev/hwrng");
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(generator, bytes + done, size - done);
    if (got == -1 && errno == EINTR) continue;
    if (got == 0) errno = EIO;
    if (got <= 0) fail("reading /dev/hwrng");
    done += (size_t)got;
  }
  if (close(generator) != 0) fail("closing /dev/hwrng");
}

/** Writing to /dev/urandom mixes without being counted: it can only help. */
static void stir(const unsigned char *bytes, size_t size) {
  const int pool = open("/dev/urandom", O_WRONLY | O_CLOEXEC);
  if (pool == -1) fail("opening /dev/urandom");
  errno = 0;
  if (write(pool, bytes, size) != (ssize_t)size) fail("writing /dev/urandom");
  if (close(pool) != 0) fail("closing /dev/urandom");
}

static void stir_in_the_platforms(void) {
  char name[64];
  if (read_text(GENERATOR, name, sizeof name) == -1 || strcmp(name, NITRO_GENERATOR) != 0) return;
  unsigned char bytes[STIRRED_BYTES];
  read_generator(bytes, sizeof bytes);
  stir(bytes, sizeof bytes);
  explicit_bzero(bytes, sizeof bytes);
}

void await_entropy(void) {
  stir_in_the_platforms();
  unsigned char probe;
  const struct timespec step = {.tv_sec = 0, .tv_nsec = WAIT_STEP_NS};
  for (int steps = 0; getrandom(&probe, sizeof probe, GRND_NONBLOCK) != sizeof probe; steps++) {
    if (errno != EAGAIN && errno != EINTR) fail("asking for random numbers");
    if (steps == MAX_WAIT_STEPS) fail("the kernel's random numbers are still not seeded");
    (void)nanosleep(&step, NULL);
  }
}
