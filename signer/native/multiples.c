// See multiples.h. Fixed windows of five bits with odd digits: the scalar is the sum of 51 digits from -31 to 31, each
// times a power of 32, and of each power the odd multiples 1 to 31 are in the table. No digit is zero, so that there is
// always something to add, and what there is to add is never special:
//
// An odd k below 2^255 is the sum of ±2^j for j from 0 to 254, where the sign of 2^j is bit j + 1 of k, and plus for
// the last. Five of these make a digit. An even scalar is taken as the group order less the scalar, and the product
// negated.
//
// Before window w is added, the sum s of the windows below is odd and less than 32^w in absolute value, and what is
// added, d × 32^w, is at least that. So the two are neither zero nor equal nor opposite as integers, and neither modulo
// the group order r, where together they stay below it: in all windows but the last. There d is above 0, and the two
// add up to the scalar, which is not 0. Were they equal, r would be d × 2^250 - s, so d would be 29, because
// 28 × 2^250 < r < 29 × 2^250 and d is odd; but then the scalar would be 58 × 2^250 - r, which is above r.
#include "multiples.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum { WINDOW_BITS = 5, SCALAR_BITS = 255, SCALAR_BYTES = 32 };
enum { WINDOWS = SCALAR_BITS / WINDOW_BITS };
/** Of each power: 1, 3, 5 … 31 times. */
enum { ROW_POINTS = 1 << (WINDOW_BITS - 1) };
/** From so many sums on, one inversion for all is cheaper than a third coordinate for each. */
enum { WORTH_AN_INVERSION = 7 };
enum { MAX_SUMS = WINDOWS };
_Static_assert((int)MAX_SCALARS <= (int)MAX_SUMS, "scalars that are multiplied together have a sum each");

struct multiples {
  /** [window][i] = (2i + 1) × 32^window × the point */
  blst_p2_affine points[WINDOWS][ROW_POINTS];
};

// ------------------------------------------------------------------------------------------------------- additions

/** As many sums, each of two points that are neither equal nor opposite nor infinity. */
struct sums {
  blst_p2_affine points[MAX_SUMS];
  blst_p2_affine addends[MAX_SUMS];
  blst_fp2 differences[MAX_SUMS];
  /** Of the differences up to here. */
  blst_fp2 products[MAX_SUMS];
  blst_fp2 inverse_of_rest, inverse, slope, x;
};

/** points[index] += addends[index], given 1 / (addend.x - point.x). Guide to Elliptic Curve Cryptography, §3.1.2. */
static void add_one(struct sums *sums, size_t index, const blst_fp2 *inverse) {
  blst_p2_affine *const point = &sums->points[index];
  const blst_p2_affine *const addend = &sums->addends[index];
  blst_fp2 *const slope = &sums->slope, *const x = &sums->x;
  blst_fp2_sub(slope, &addend->y, &point->y);
  blst_fp2_mul(slope, slope, inverse);
  blst_fp2_sqr(x, slope);
  blst_fp2_sub(x, x, &point->x);
  blst_fp2_sub(x, x, &addend->x);
  blst_fp2_sub(&point->x, &point->x, x);
  blst_fp2_mul(slope, slope, &point->x);
  blst_fp2_sub(&point->y, slope, &point->y);
  point->x = *x;
}

/** points[i] += addends[i]. All share one inversion: Guide to Elliptic Curve Cryptography, algorithm 2.26. */
static void add_together(struct sums *sums, size_t count) {
  blst_fp2 *const products = sums->products;
  for (size_t index = 0; index < count; index++) {
    blst_fp2_sub(&sums->differences[index], &sums->addends[index].x, &sums->points[index].x);
    if (index == 0) products[0] = sums->differences[0];
    else blst_fp2_mul(&products[index], &products[index - 1], &sums->differences[index]);
  }
  blst_fp2_inverse(&sums->inverse_of_rest, &products[count - 1]);
  for (size_t index = count - 1; index > 0; index--) {
    blst_fp2_mul(&sums->inverse, &sums->inverse_of_rest, &products[index - 1]);
    blst_fp2_mul(&sums->inverse_of_rest, &sums->inverse_of_rest, &sums->differences[index]);
    add_one(sums, index, &sums->inverse);
  }
  add_one(sums, 0, &sums->inverse_of_rest);
}

// ----------------------------------------------------------------------------------------------------------- table

/** The first of each row, and what is added to it again and again. Everything here is public. */
static void begin_rows(struct sums *sums, const blst_p2 *point) {
  blst_p2 firsts[WINDOWS], doubles[WINDOWS];
  blst_p2 power = *point;
  for (size_t window = 0; window < WINDOWS; window++) {
    firsts[window] = power;
    blst_p2_double(&doubles[window], &firsts[window]);
    power = doubles[window];
    for (size_t bit = 1; bit < WINDOW_BITS; bit++) blst_p2_double(&power, &power);
  }
  // A list that ends with NULL continues where its last pointer points: blst.h, blst_p2s_to_affine.
  const blst_p2 *const lists[][2] = {{firsts, NULL}, {doubles, NULL}};
  blst_p2s_to_affine(sums->points, lists[0], WINDOWS);
  blst_p2s_to_affine(sums->addends, lists[1], WINDOWS);
}

struct multiples *multiples_of(const blst_p2 *point) {
  if (blst_p2_is_inf(point)) return NULL;
  struct multiples *multiples = malloc(sizeof *multiples);
  if (multiples == NULL) return NULL;
  struct sums sums;
  begin_rows(&sums, point);
  for (size_t index = 0; index < ROW_POINTS; index++) {
    if (index > 0) add_together(&sums, WINDOWS);
    for (size_t window = 0; window < WINDOWS; window++) multiples->points[window][index] = sums.points[window];
  }
  return multiples;
}

// -------------------------------------------------------------------------------------------------- multiplication

/** Little endian. */
static const unsigned char ORDER[SCALAR_BYTES] = {0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe,
                                                  0xff, 0x02, 0xa4, 0xbd, 0x53, 0x05, 0xd8, 0xa1, 0x09, 0x08, 0xd8,
                                                  0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73};

struct odd_scalar {
  unsigned char bytes[SCALAR_BYTES + 1]; // little endian, and room to read two bytes at the end
  uint64_t is_negated; // 0 or 1
};

/** All ones for 1, zeros for 0, in a way that the compiler cannot make a branch of. */
static uint64_t mask_of(uint64_t flag) {
  uint64_t mask = 0 - flag;
  __asm__("" : "+r"(mask));
  return mask;
}

static void make_odd(struct odd_scalar *odd, const blst_scalar *scalar) {
  odd->is_negated = 1 - (scalar->b[0] & 1);
  const uint64_t mask = mask_of(odd->is_negated);
  uint64_t borrow = 0;
  for (size_t index = 0; index < SCALAR_BYTES; index++) {
    const uint64_t difference = (uint64_t)ORDER[index] - scalar->b[index] - borrow;
    borrow = difference >> 63;
    odd->bytes[index] = (unsigned char)((difference & mask) | (scalar->b[index] & ~mask));
  }
  odd->bytes[SCALAR_BYTES - 1] |= 0x80; // bit 255: the sign of the last power is plus
  odd->bytes[SCALAR_BYTES] = 0;
}

typedef uint64_t words __attribute__((vector_size(32)));
enum { POINT_WORDS = sizeof(blst_p2_affine) / sizeof(words) };

/** All of the row is read. */
static void select_point(blst_p2_affine *point, const blst_p2_affine row[ROW_POINTS], uint64_t wanted) {
  words selected[POINT_WORDS] = {{0}};
  for (uint64_t index = 0; index < ROW_POINTS; index++) {
    const uint64_t mask = mask_of(((wanted ^ index) - 1) >> 63); // 1 where they are equal
    words candidate[POINT_WORDS];
    memcpy(candidate, &row[index], sizeof candidate);
    for (size_t part = 0; part < POINT_WORDS; part++) selected[part] |= candidate[part] & mask;
  }
  memcpy(point, selected, sizeof *point);
  wipe(selected, sizeof selected);
}

/** What the window adds: its digit times its power of 32. */
static void choose(blst_p2_affine *point, const struct multiples *multiples, size_t window,
                   const struct odd_scalar *odd) {
  const size_t bit = window * WINDOW_BITS + 1;
  const uint64_t two_bytes = (uint64_t)odd->bytes[bit / 8] | (uint64_t)odd->bytes[bit / 8 + 1] << 8;
  const uint64_t signs = two_bytes >> (bit % 8) & ((1 << WINDOW_BITS) - 1); // the digit is 2 × signs - 31
  const uint64_t is_negative = 1 - (signs >> (WINDOW_BITS - 1));
  select_point(point, multiples->points[window], (signs ^ mask_of(is_negative)) & (ROW_POINTS - 1));
  blst_fp2_cneg(&point->y, &point->y, is_negative);
}

void multiples_multiply(blst_p2 products[], const struct multiples *multiples, const blst_scalar *const scalars[],
                        size_t count) {
  struct odd_scalar odd[MAX_SCALARS];
  struct sums sums;
  const int shares_inversions = count >= WORTH_AN_INVERSION;
  for (size_t index = 0; index < count; index++) {
    make_odd(&odd[index], scalars[index]);
    choose(&sums.points[index], multiples, 0, &odd[index]);
    blst_p2_from_affine(&products[index], &sums.points[index]);
  }
  for (size_t window = 1; window < WINDOWS; window++) {
    for (size_t index = 0; index < count; index++) {
      choose(&sums.addends[index], multiples, window, &odd[index]);
      if (!shares_inversions) blst_p2_add_affine(&products[index], &products[index], &sums.addends[index]);
    }
    if (shares_inversions) add_together(&sums, count);
  }
  for (size_t index = 0; index < count; index++) {
    if (shares_inversions) blst_p2_from_affine(&products[index], &sums.points[index]);
    blst_p2_cneg(&products[index], odd[index].is_negated);
  }
  wipe(odd, sizeof odd);
  wipe(&sums, sizeof sums);
}
