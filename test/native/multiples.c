// Proof of signer/native/multiples.c, for `make check-multiples`: it computes what blst computes, and nothing it does
// depends on the secret. `multiples equal COUNT` compares signatures of random and of edge scalars with blst's own;
// under valgrind, `multiples secret` marks the scalar as undefined, so that a branch or an address that depends on it
// is an error, in the multiplication and in a whole signature. What blst may branch on is in multiples.supp. All keys
// here are TEST keys.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <valgrind/memcheck.h>

#include "../../signer/native/multiples.h"
#include "../../signer/native/sign.h"

enum { SCALAR_BYTES = 32, SCALARS_PER_ROOT = 500, EDGES = 7 };
/** In each, half of the signings have one root: more than signer/native/sign.c waits for before it makes its table. */
enum { GROUPS_UNTIL_TABLE = 4 };

static const char TAG[] = "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/** The order of the group, big endian. */
static const unsigned char ORDER[SCALAR_BYTES] = {0x73, 0xed, 0xa7, 0x53, 0x29, 0x9d, 0x7d, 0x48, 0x33, 0x39, 0xd8,
                                                  0x08, 0x09, 0xa1, 0xd8, 0x05, 0x53, 0xbd, 0xa4, 0x02, 0xff, 0xfe,
                                                  0x5b, 0xfe, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01};

static void fail(const char *message) {
  fprintf(stderr, "%s\n", message);
  exit(1);
}

static void fill_random(void *bytes, size_t length) {
  if (getrandom(bytes, length, 0) != (ssize_t)length) fail("no random bytes");
}

/** Whether a big-endian number is larger. */
static void subtract(unsigned char bytes[SCALAR_BYTES], size_t amount) {
  for (size_t at = SCALAR_BYTES; at-- > 0 && amount > 0;) {
    const size_t borrow = bytes[at] < (amount & 0xff);
    bytes[at] = (unsigned char)(bytes[at] - (amount & 0xff));
    amount = (amount >> 8) + borrow;
  }
}

/**
 * Random ones, and those where windows are all zeros, all ones, at the borders between digits, or next to the order.
 */
static bool make_scalar(blst_scalar *scalar, size_t number) {
  unsigned char bytes[SCALAR_BYTES];
  fill_random(bytes, sizeof bytes);
  const size_t length = 1 + bytes[0] % (SCALAR_BYTES - 1);
  switch (number % EDGES) {
    case 0: // 1 to 256, then any power of two beside others
      memset(bytes, 0, sizeof bytes);
      if (number / EDGES < 256) bytes[31] = (unsigned char)(number / EDGES + 1);
      else bytes[length] = (unsigned char)(1 << (number % 8));
      break;
    case 1: // the order less 1 to 256
      memcpy(bytes, ORDER, sizeof bytes);
      subtract(bytes, 1 + number / EDGES % 256);
      break;
    case 2: memset(bytes, 0, length); break;
    case 3: memset(bytes + SCALAR_BYTES - length, 0xff, length); break;
    case 4: memset(bytes + SCALAR_BYTES - length, number & 1 ? 0x84 : 0x42, length); break; // digits of one bit
    case 5: // about 27, 28 and 29 times 2^250, where the last digit is largest
      memset(bytes, number & 1 ? 0xff : 0, SCALAR_BYTES - 1);
      bytes[0] = (unsigned char)(0x6b + 4 * (number / EDGES % 3) + (number & 1 ? 0 : 1));
      break;
    default: break;
  }
  bytes[0] &= 0x7f;
  blst_scalar_from_bendian(scalar, bytes);
  return blst_sk_check(scalar);
}

/** The point of a random root. */
static void make_point(blst_p2 *point, unsigned char root[ROOT_BYTES]) {
  fill_random(root, ROOT_BYTES);
  blst_hash_to_g2(point, root, ROOT_BYTES, (const unsigned char *)TAG, sizeof TAG - 1, NULL, 0);
}

static void compress(unsigned char signature[SIGNATURE_BYTES], const blst_p2 *product) {
  blst_p2_affine affine;
  blst_p2_to_affine(&affine, product);
  blst_p2_affine_compress(signature, &affine);
}

/** Signatures of the whole path, made together as the signer makes them, and what blst says of each. */
struct group {
  size_t count;
  blst_scalar scalars[MAX_SIGNINGS];
  unsigned char roots[MAX_SIGNINGS][ROOT_BYTES];
  unsigned char expected[MAX_SIGNINGS][SIGNATURE_BYTES];
  unsigned char signatures[MAX_SIGNINGS][SIGNATURE_BYTES];
};

static void sign_group(struct point_cache *cache, struct group *group) {
  struct signing signings[MAX_SIGNINGS];
  for (size_t index = 0; index < group->count; index++) {
    signings[index] = (struct signing){&group->scalars[index], group->roots[index], group->signatures[index]};
  }
  sign_roots(cache, signings, group->count);
}

/** All of a group by the table at once. */
static void compare_together(const struct multiples *multiples, const struct group *group) {
  const blst_scalar *scalars[MAX_SIGNINGS];
  blst_p2 products[MAX_SIGNINGS];
  unsigned char signature[SIGNATURE_BYTES];
  for (size_t index = 0; index < group->count; index++) scalars[index] = &group->scalars[index];
  multiples_multiply(products, multiples, scalars, group->count);
  for (size_t index = 0; index < group->count; index++) {
    compress(signature, &products[index]);
    const bool same = memcmp(group->expected[index], signature, SIGNATURE_BYTES) == 0;
    if (!same) fail("another signature than blst's, together");
  }
}

/** And by the whole path, without tables and with them. */
static void compare_group(struct point_cache *const caches[2], const struct multiples *multiples, struct group *group) {
  if (group->count == 0) return;
  compare_together(multiples, group);
  for (size_t index = 0; index < 2; index++) {
    sign_group(caches[index], group);
    const bool same = memcmp(group->expected, group->signatures, group->count * SIGNATURE_BYTES) == 0;
    if (!same) fail("another signature of the whole path than blst's");
  }
  group->count = 0;
}

static size_t compare(size_t count) {
  blst_p2 point, product;
  memset(&point, 0, sizeof point);
  struct multiples *multiples = multiples_of(&point);
  if (multiples != NULL) fail("a table of the point at infinity");
  struct point_cache *const caches[] = {point_cache_open(false), point_cache_open(true)};
  if (caches[0] == NULL || caches[1] == NULL) fail("no memory");
  struct group group = {.count = 0};
  unsigned char root[ROOT_BYTES];
  size_t compared = 0, groups = 0;
  for (size_t number = 0; number < count; number++) {
    if (number % SCALARS_PER_ROOT == 0) {
      compare_group(caches, multiples, &group);
      free(multiples);
      make_point(&point, root);
      multiples = multiples_of(&point);
      if (multiples == NULL) fail("no memory");
    }
    blst_scalar *scalar = &group.scalars[group.count];
    if (!make_scalar(scalar, number)) continue;
    unsigned char *expected = group.expected[group.count], signature[SIGNATURE_BYTES];
    blst_p2_affine signed_by_blst;
    blst_sign_pk2_in_g1(NULL, &signed_by_blst, &point, scalar);
    blst_p2_affine_compress(expected, &signed_by_blst);
    const blst_scalar *const alone[] = {scalar};
    multiples_multiply(&product, multiples, alone, 1);
    compress(signature, &product);
    if (memcmp(expected, signature, SIGNATURE_BYTES) != 0) fail("another signature than blst's");
    memcpy(group.roots[group.count++], root, ROOT_BYTES);
    compared += 1;
    if (group.count < 1 + groups % MAX_SIGNINGS) continue;
    compare_group(caches, multiples, &group);
    groups += 1; // of all sizes in turn
  }
  compare_group(caches, multiples, &group);
  for (size_t index = 0; index < 2; index++) point_cache_close(caches[index]);
  free(multiples);
  return compared;
}

/** Alone and together: nothing in the multiplication may branch, but blst where it asks whether it inverted. */
static void multiply_undefined(size_t count) {
  blst_p2 point, products[MAX_SCALARS];
  unsigned char root[ROOT_BYTES];
  make_point(&point, root);
  struct multiples *multiples = multiples_of(&point);
  if (multiples == NULL) fail("no memory");
  blst_scalar scalars[MAX_SCALARS];
  const blst_scalar *list[MAX_SCALARS];
  for (size_t index = 0, number = 0; index < count; number++) {
    if (!make_scalar(&scalars[index], number)) continue;
    list[index] = &scalars[index];
    index += 1;
  }
  (void)VALGRIND_MAKE_MEM_UNDEFINED(scalars, sizeof scalars);
  multiples_multiply(products, multiples, list, count);
  for (size_t index = 0; index < count; index++) {
    unsigned char marks[sizeof *products] = {0};
    (void)VALGRIND_GET_VBITS(&products[index], marks, sizeof marks);
    if (marks[0] == 0) fail("the scalar's mark was lost on the way");
  }
  free(multiples);
}

/**
 * blst's multiplication by itself: multiples.supp lets blst_p2_mult ask one question before it, and a compiler may put
 * the two together.
 */
static void multiply_undefined_by_blst(void) {
  blst_p2 point;
  unsigned char root[ROOT_BYTES];
  make_point(&point, root);
  blst_scalar scalar;
  while (!make_scalar(&scalar, EDGES - 1)) continue;
  (void)VALGRIND_MAKE_MEM_UNDEFINED(&scalar, sizeof scalar);
  blst_p2_affine product;
  blst_sign_pk2_in_g1(NULL, &product, &point, &scalar);
}

/**
 * sign_roots as the signer calls it, from the scalars to the bytes of the signatures; as blst does it, and with a
 * table: a quarter of the group has its root one by one, half of it together, the others have roots of their own.
 */
static void sign_undefined(bool makes_tables) {
  struct point_cache *cache = point_cache_open(makes_tables);
  if (cache == NULL) fail("no memory");
  struct group group = {.count = MAX_SIGNINGS};
  for (size_t index = 0; index < MAX_SIGNINGS; index++) {
    while (!make_scalar(&group.scalars[index], EDGES - 1)) continue;
    const bool shares_root = index > 1 && (index % 2 == 1 || index >= MAX_SIGNINGS / 2);
    if (shares_root) memcpy(group.roots[index], group.roots[1], ROOT_BYTES);
    else fill_random(group.roots[index], ROOT_BYTES);
  }
  for (size_t times = 0; times < GROUPS_UNTIL_TABLE; times++) sign_group(cache, &group);
  memcpy(group.expected, group.signatures, sizeof group.expected);
  (void)VALGRIND_MAKE_MEM_UNDEFINED(&group.scalars, sizeof group.scalars);
  sign_group(cache, &group);
  for (size_t index = 0; index < MAX_SIGNINGS; index++) {
    unsigned char marks[SIGNATURE_BYTES] = {0};
    (void)VALGRIND_GET_VBITS(group.signatures[index], marks, sizeof marks);
    if (marks[SIGNATURE_BYTES - 1] == 0) fail("the scalar's mark was lost on the way to the signature");
  }
  (void)VALGRIND_MAKE_MEM_DEFINED(group.signatures, sizeof group.signatures);
  if (memcmp(group.expected, group.signatures, sizeof group.expected) != 0) fail("other signatures than before");
  point_cache_close(cache);
}

int main(int count, char **arguments) {
  if (count == 3 && strcmp(arguments[1], "equal") == 0) {
    printf("%zu signatures, each the same as blst's\n", compare(strtoul(arguments[2], NULL, 10)));
    return 0;
  }
  if (count != 2 || strcmp(arguments[1], "secret") != 0) fail("multiples equal COUNT | multiples secret");
  if (RUNNING_ON_VALGRIND == 0) fail("`multiples secret` says nothing without valgrind");
  for (size_t scalars = 1; scalars <= MAX_SCALARS; scalars++) multiply_undefined(scalars);
  multiply_undefined_by_blst();
  sign_undefined(true);
  sign_undefined(false);
  return 0;
}
