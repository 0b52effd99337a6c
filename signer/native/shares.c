// See shares.h.
#include "shares.h"

#include <stdint.h>
#include <string.h>

#include "arguments.h"
#include "blst.h"
#include "derive.h"
#include "keyring.h"
#include "memory.h"
#include "sign.h"

/** 128 bits more than the group order, so that a coefficient is as good as uniform (RFC 9380 §5.1). */
enum { COEFFICIENT_BYTES = 48 };
enum { IDENTIFIER_BITS = 8 };

/** Coefficients, the secret key first, and the share that is being made. */
struct polynomial {
  blst_scalar coefficients[MAX_PARTICIPANTS];
  blst_scalar share;
};

/** False, in one of 2^250 cases or so, for a coefficient or a sum that is zero. */
static bool read_polynomial(struct polynomial *secret, const unsigned char *secret_key, const unsigned char *random,
                            size_t threshold) {
  blst_scalar_from_bendian(&secret->coefficients[0], secret_key);
  if (!blst_sk_check(&secret->coefficients[0])) return false;
  for (size_t degree = 1; degree < threshold; degree++) {
    const unsigned char *bytes = random + (degree - 1) * COEFFICIENT_BYTES;
    if (!blst_scalar_from_be_bytes(&secret->coefficients[degree], bytes, COEFFICIENT_BYTES)) return false;
  }
  return true;
}

/** By Horner's rule. */
static bool make_share(struct polynomial *secret, size_t threshold, unsigned char identifier, unsigned char *bytes) {
  blst_scalar at;
  blst_scalar_from_lendian(&at, (unsigned char[sizeof at]){identifier});
  secret->share = secret->coefficients[threshold - 1];
  for (size_t degree = threshold - 1; degree-- > 0;) {
    if (!blst_sk_mul_n_check(&secret->share, &secret->share, &at) ||
        !blst_sk_add_n_check(&secret->share, &secret->share, &secret->coefficients[degree])) {
      return false;
    }
  }
  blst_bendian_from_scalar(bytes, &secret->share);
  return true;
}

static bool split(struct polynomial *secret, size_t threshold, unsigned char *shares, size_t participants,
                  unsigned char *commitments) {
  for (size_t place = 0; place < participants; place++) {
    if (!make_share(secret, threshold, (unsigned char)(place + 1), shares + place * SECRET_KEY_BYTES)) return false;
  }
  for (size_t degree = 0; degree < threshold; degree++) {
    blst_p1 commitment;
    blst_sk_to_pk_in_g1(&commitment, &secret->coefficients[degree]);
    blst_p1_compress(commitments + degree * PUBLIC_KEY_BYTES, &commitment);
    wipe(&commitment, sizeof commitment); // its third coordinate tells of the secret
  }
  return true;
}

/** How many pieces of this length the bytes of a Uint8Array are; 0 for something else, or for more than `limit`. */
static size_t count_pieces(napi_env env, napi_value value, size_t piece, size_t limit, unsigned char **bytes) {
  size_t length = 0;
  *bytes = get_elements(env, value, napi_uint8_array, &length);
  return *bytes == NULL || length % piece != 0 || length / piece > limit ? 0 : length / piece;
}

static napi_value split_key(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  unsigned char *shares, *commitments;
  struct secret_region region;
  REQUIRE(get_arguments(env, info, 4, arguments), "splitKey(secretKey, random, shares, commitments)");
  const unsigned char *secret_key = get_bytes(env, arguments[0], SECRET_KEY_BYTES);
  const size_t participants = count_pieces(env, arguments[2], SECRET_KEY_BYTES, MAX_PARTICIPANTS, &shares);
  const size_t threshold = count_pieces(env, arguments[3], PUBLIC_KEY_BYTES, participants, &commitments);
  REQUIRE(secret_key != NULL && threshold >= 2, "splitKey: a secret key, 2 to 32 shares, 2 commitments to one a share");
  const unsigned char *random = get_bytes(env, arguments[1], (threshold - 1) * COEFFICIENT_BYTES);
  REQUIRE(random != NULL, "splitKey: 48 random bytes for each coefficient");
  if (!secret_region_open(&region, sizeof(struct polynomial), LOCK_BEST_EFFORT)) return throw_refusal(env, "no memory");

  struct polynomial *secret = (struct polynomial *)region.bytes;
  const bool done = read_polynomial(secret, secret_key, random, threshold) &&
                    split(secret, threshold, shares, participants, commitments);
  secret_region_close(&region);
  if (!done) {
    napi_throw_range_error(env, NULL, "the secret key is zero or not below the group order, or a sum was zero");
  }
  return NULL;
}

static bool read_commitment(blst_p1 *point, const unsigned char bytes[PUBLIC_KEY_BYTES]) {
  blst_p1_affine affine;
  if (blst_p1_uncompress(&affine, bytes) != BLST_SUCCESS || blst_p1_affine_is_inf(&affine)) return false;
  blst_p1_from_affine(point, &affine);
  return blst_p1_affine_in_g1(&affine);
}

/** The polynomial of the commitments at the identifier, by Horner's rule: the public key of that share. */
static bool evaluate(const unsigned char *commitments, size_t threshold, unsigned char identifier,
                     unsigned char public_key[PUBLIC_KEY_BYTES]) {
  blst_p1 sum, commitment;
  if (!read_commitment(&sum, commitments + (threshold - 1) * PUBLIC_KEY_BYTES)) return false;
  for (size_t degree = threshold - 1; degree-- > 0;) {
    if (!read_commitment(&commitment, commitments + degree * PUBLIC_KEY_BYTES)) return false;
    blst_p1_mult(&sum, &sum, &identifier, IDENTIFIER_BITS);
    blst_p1_add_or_double(&sum, &sum, &commitment);
  }
  blst_p1_compress(public_key, &sum);
  return !blst_p1_is_inf(&sum);
}

static napi_value share_public_key(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  unsigned char *commitments;
  uint32_t identifier;
  REQUIRE(get_arguments(env, info, 3, arguments), "sharePublicKey(commitments, participantId, publicKey)");
  const size_t threshold = count_pieces(env, arguments[0], PUBLIC_KEY_BYTES, MAX_PARTICIPANTS, &commitments);
  unsigned char *public_key = get_bytes(env, arguments[2], PUBLIC_KEY_BYTES);
  REQUIRE(threshold >= 1 && public_key != NULL,
          "sharePublicKey: 1 to 32 commitments, room for a public key of 48 bytes");
  REQUIRE(get_whole_number(env, arguments[1], MAX_PARTICIPANTS, &identifier) && identifier > 0,
          "sharePublicKey: a participant of 1 to 32");
  if (!evaluate(commitments, threshold, (unsigned char)identifier, public_key)) {
    napi_throw_range_error(env, NULL, "a commitment is no point of G1, or the share is zero");
  }
  return NULL;
}

static blst_fr field_element(uint64_t number) {
  blst_fr element;
  blst_fr_from_uint64(&element, (const uint64_t[4]){number});
  return element;
}

/** The product of all differences of two identifiers. False when two are one, or one is zero. */
static bool differences(const unsigned char *identifiers, size_t count, blst_fr *product) {
  *product = field_element(1);
  for (size_t place = 0; place < count; place++) {
    if (identifiers[place] == 0) return false;
    for (size_t other = 0; other < place; other++) {
      if (identifiers[other] == identifiers[place]) return false;
      const blst_fr one = field_element(identifiers[place]), two = field_element(identifiers[other]);
      blst_fr difference;
      blst_fr_sub(&difference, &one, &two);
      blst_fr_mul(product, product, &difference);
    }
  }
  return true;
}

/** Lagrange's coefficient at zero, the product of j / (j - i) over the other identifiers j, times `factor`. */
static blst_fr lagrange(const unsigned char *identifiers, size_t count, size_t place, const blst_fr *factor) {
  blst_fr above = *factor, below = field_element(1);
  const blst_fr own = field_element(identifiers[place]);
  for (size_t other = 0; other < count; other++) {
    if (other == place) continue;
    blst_fr theirs = field_element(identifiers[other]);
    blst_fr_mul(&above, &above, &theirs);
    blst_fr_sub(&theirs, &theirs, &own);
    blst_fr_mul(&below, &below, &theirs);
  }
  blst_fr_inverse(&below, &below);
  blst_fr_mul(&above, &above, &below);
  return above;
}

static size_t bits_of(const blst_scalar *number) {
  size_t bytes = sizeof number->b;
  while (bytes > 1 && number->b[bytes - 1] == 0) bytes -= 1;
  return 8 * bytes;
}

/** By the number or by its negative, whichever is shorter: neither is secret. */
static void multiply_by(blst_p2 *point, blst_fr number) {
  blst_scalar positive, negative;
  blst_scalar_from_fr(&positive, &number);
  blst_fr_cneg(&number, &number, true);
  blst_scalar_from_fr(&negative, &number);
  const bool is_negative = bits_of(&negative) < bits_of(&positive);
  const blst_scalar *shorter = is_negative ? &negative : &positive;
  blst_p2_mult(point, point, shorter->b, bits_of(shorter));
  blst_p2_cneg(point, is_negative);
}

/**
 * Coefficients times the product of all differences are whole numbers, and short ones for few participants: one
 * multiplication by the inverse of the product, at the end, takes the place of a long one for each.
 * The caller verifies what comes out, and so whether each partial was of the group.
 */
static bool combine(const unsigned char *identifiers, const unsigned char *partials, size_t count,
                    unsigned char signature[SIGNATURE_BYTES]) {
  blst_fr product;
  blst_p2 sum = {0}; // the point at infinity
  if (!differences(identifiers, count, &product)) return false;
  for (size_t place = 0; place < count; place++) {
    blst_p2_affine affine;
    blst_p2 partial;
    if (blst_p2_uncompress(&affine, partials + place * SIGNATURE_BYTES) != BLST_SUCCESS) return false;
    blst_p2_from_affine(&partial, &affine);
    multiply_by(&partial, lagrange(identifiers, count, place, &product));
    blst_p2_add_or_double(&sum, &sum, &partial);
  }
  blst_fr_inverse(&product, &product);
  multiply_by(&sum, product);
  blst_p2_compress(signature, &sum);
  return true;
}

static napi_value combine_partials(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  unsigned char *identifiers;
  REQUIRE(get_arguments(env, info, 3, arguments), "combinePartials(participantIds, partials, signature)");
  const size_t count = count_pieces(env, arguments[0], 1, MAX_PARTICIPANTS, &identifiers);
  const unsigned char *partials = get_bytes(env, arguments[1], count * SIGNATURE_BYTES);
  unsigned char *signature = get_bytes(env, arguments[2], SIGNATURE_BYTES);
  REQUIRE(count >= 1 && partials != NULL && signature != NULL,
          "combinePartials: 1 to 32 partial signatures of 96 bytes");
  if (!combine(identifiers, partials, count, signature)) {
    napi_throw_range_error(env, NULL, "a participant is zero or named twice, or a partial signature is no point");
  }
  return NULL;
}

bool export_shares(napi_env env, napi_value exports) {
  static const struct named_function functions[] = {
      {"splitKey", split_key},
      {"sharePublicKey", share_public_key},
      {"combinePartials", combine_partials},
  };
  return export_functions(env, exports, functions, sizeof functions / sizeof *functions);
}
