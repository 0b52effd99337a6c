// See multiples.h. Fixed windows of five bits with signed digits (Handbook of Applied Cryptography, 14.109 with the
// digits of 14.7.1): the scalar is the sum of 52 digits from -15 to 16, each times a power of 32, and of each power the
// multiples 1 to 16 are in the table.
#include "multiples.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum { WINDOW_BITS = 5, LARGEST_DIGIT = 1 << (WINDOW_BITS - 1), SCALAR_BYTES = 32 };
/** The order has 255 bits, 51 windows; the digit after them takes the last carry. */
enum { WINDOWS = 255 / WINDOW_BITS + 1, POINTS = WINDOWS * LARGEST_DIGIT };
enum { POINT_WORDS = sizeof(blst_p2_affine) / sizeof(uint64_t) };

struct multiples {
  /** [window][digit - 1] */
  blst_p2_affine points[WINDOWS][LARGEST_DIGIT];
};

struct digit {
  uint64_t magnitude; // 0 to LARGEST_DIGIT
  uint64_t is_negative; // 0 or 1
};

/** row[i] = (i + 1) × first. Everything here is public. A doubling is a third of the price of an addition. */
static void fill_row(blst_p2 row[LARGEST_DIGIT], const blst_p2 *first) {
  row[0] = *first;
  for (size_t multiple = 2; multiple <= LARGEST_DIGIT; multiple++) {
    if (multiple % 2 == 0) blst_p2_double(&row[multiple - 1], &row[multiple / 2 - 1]);
    else blst_p2_add(&row[multiple - 1], &row[multiple - 2], first);
  }
}

struct multiples *multiples_of(const blst_p2 *point) {
  struct multiples *multiples = malloc(sizeof *multiples);
  blst_p2(*rows)[LARGEST_DIGIT] = malloc(POINTS * sizeof(blst_p2));
  if (multiples != NULL && rows != NULL) {
    blst_p2 first = *point;
    for (size_t window = 0; window < WINDOWS; window++) {
      fill_row(rows[window], &first);
      blst_p2_double(&first, &rows[window][LARGEST_DIGIT - 1]); // 32 × first
    }
    // A list that ends with NULL continues where its last pointer points: blst.h, blst_p2s_to_affine.
    const blst_p2 *const list[] = {&rows[0][0], NULL};
    blst_p2s_to_affine(&multiples->points[0][0], list, POINTS);
  } else {
    free(multiples);
    multiples = NULL;
  }
  free(rows);
  return multiples;
}

/** The digit of a window, and the carry into the next one. Without a branch on either. */
static struct digit take_digit(const unsigned char bytes[SCALAR_BYTES + 2], size_t window, uint64_t *carry) {
  const size_t bit = window * WINDOW_BITS;
  const uint64_t two_bytes = (uint64_t)bytes[bit / 8] | (uint64_t)bytes[bit / 8 + 1] << 8;
  const uint64_t value = (two_bytes >> (bit % 8) & ((1 << WINDOW_BITS) - 1)) + *carry; // 0 to 32
  *carry = (value + LARGEST_DIGIT - 1) >> WINDOW_BITS; // 1 from 17 on: then the digit is value - 32
  const uint64_t is_negative = *carry;
  const uint64_t mask = 0 - is_negative;
  return (struct digit){((value ^ mask) + is_negative) + (is_negative << WINDOW_BITS), is_negative};
}

/** All of the row is read. A magnitude of 0 gives zeros, which is blst's point at infinity. */
static void select_point(blst_p2_affine *point, const blst_p2_affine row[LARGEST_DIGIT], uint64_t magnitude) {
  uint64_t selected[POINT_WORDS] = {0};
  for (uint64_t index = 0; index < LARGEST_DIGIT; index++) {
    uint64_t mask = 0 - (((magnitude ^ (index + 1)) - 1) >> 63); // all ones where they are equal
    __asm__("" : "+r"(mask)); // so that the compiler cannot make a branch of it
    uint64_t words[POINT_WORDS];
    memcpy(words, &row[index], sizeof words);
    for (size_t word = 0; word < POINT_WORDS; word++) selected[word] |= words[word] & mask;
  }
  memcpy(point, selected, sizeof *point);
  wipe(selected, sizeof selected);
}

void multiples_multiply(blst_p2 *product, const struct multiples *multiples, const blst_scalar *scalar) {
  unsigned char bytes[SCALAR_BYTES + 2] = {0}; // little endian, and room to read two bytes at the end
  memcpy(bytes, scalar->b, SCALAR_BYTES);
  memset(product, 0, sizeof *product); // the point at infinity
  uint64_t carry = 0;
  blst_p2_affine addend;
  for (size_t window = 0; window < WINDOWS; window++) {
    const struct digit digit = take_digit(bytes, window, &carry);
    select_point(&addend, multiples->points[window], digit.magnitude);
    blst_fp2_cneg(&addend.y, &addend.y, digit.is_negative);
    // The windows below add up to at most 16/31 of this window's power, and both together stay below the order. So the
    // two points are never equal, nor each other's opposite, and blst's plain addition is right. After the last window
    // that does not hold any more.
    if (window < WINDOWS - 1) blst_p2_add_affine(product, product, &addend);
    else blst_p2_add_or_double_affine(product, product, &addend);
  }
  wipe(bytes, sizeof bytes);
  wipe(&addend, sizeof addend);
}
