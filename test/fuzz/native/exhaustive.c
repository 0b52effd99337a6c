// `make check-bounds`: every input of init.c and of addon.c within a bound, under the address and undefined
// sanitizers, and not only those that a fuzzer comes to. The bounds are below: up to WORDS of the pieces that these
// parsers tell apart, in every order, each given whole, byte by byte, with interruptions, or not at all.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 8192 };

struct piece {
  const char *bytes;
  size_t length;
};

static uint8_t input[MAX_BYTES];
static unsigned long runs;

static void try_all(size_t length, const struct piece *pieces, size_t count, unsigned more) {
  // A copy of exactly this size, so that a byte read behind it is found.
  uint8_t *copy = malloc(length);
  if (copy == NULL) abort();
  memcpy(copy, input, length);
  LLVMFuzzerTestOneInput(copy, length);
  free(copy);
  runs += 1;
  if (more == 0) return;
  for (size_t at = 0; at < count; at++) {
    if (length + pieces[at].length > MAX_BYTES) continue;
    memcpy(input + length, pieces[at].bytes, pieces[at].length);
    try_all(length + pieces[at].length, pieces, count, more - 1);
  }
}

#ifdef BOUNDS_OF_INIT
enum { WORDS = 4 };
static char long_value[64], longer[4095], longest[4096];
#define PIECE(text) {text, sizeof text - 1}
#define MADE(bytes) {bytes, sizeof bytes}

static void check(void) {
  memset(long_value, '1', sizeof long_value);
  memset(longer, 'x', sizeof longer);
  memset(longest, '\n', sizeof longest);
  static const struct piece texts[] = {
      PIECE("strongroom.parent_cid="), PIECE("strongroom.evidence="), PIECE("unsigned"), PIECE(" "), PIECE("\n"),
      PIECE("0"), PIECE("16"), PIECE("4294967294"), PIECE("4294967295"), PIECE("\0"), PIECE("\xff"), PIECE("/a.ko"),
      PIECE("nsm-hwrng\n"), MADE(long_value), MADE(longer), MADE(longest),
  };
  static const uint8_t ways[] = {0, 1, 7, 15, 16}; // whole, by one, by seven, with interruptions, no such file
  for (uint8_t what = 0; what < 3; what++) {
    for (size_t way = 0; way < sizeof ways; way++) {
      input[0] = what;
      input[1] = ways[way];
      // One byte at a time of texts of 4096 takes long.
      try_all(2, texts, sizeof texts / sizeof *texts, ways[way] == 0 ? WORDS : WORDS - 1);
    }
  }
  // The heartbeat: whether each step succeeds, and every answer.
  static char bytes[256];
  static struct piece answers[5];
  for (int value = 0; value < 256; value++) {
    bytes[value] = (char)value;
    input[0] = 3;
    input[1] = 0;
    answers[0] = (struct piece){&bytes[value], 1};
    answers[1] = (struct piece)PIECE("\0");
    answers[2] = (struct piece)PIECE("\1");
    try_all(2, answers, 3, 6);
  }
}
#else
enum { LENGTHS = 5 };

/** Every length that the answer may state, by what it is beside the room for it, and every length that is there. */
static void check(void) {
  static const uint64_t stated[] = {0, 1, 15, 16, 4095, 4096, 12287, 12288, 12289, 0x7fffffff, 0xffffffff, 0x100000000, UINT64_MAX};
  for (uint8_t what = 0; what < 2; what++) {
    for (size_t at = 0; at < sizeof stated / sizeof *stated; at++) {
      for (size_t length = 0; length <= 4200; length++) {
        input[0] = what;
        memcpy(input + 1, &stated[at], sizeof stated[at]);
        memset(input + 9, (int)(length & 0xff), sizeof input - 9);
        input[9] = 40; // AF_VSOCK, or not
        input[10] = length % 3 == 0;
        try_all(1 + length, NULL, 0, 0);
      }
    }
  }
}
#endif

int main(void) {
  check();
  printf("%lu inputs\n", runs);
  return 0;
}
