// See receipts.h.
#include "receipts.h"

#include <string.h>

#include "arguments.h"
#include "blst.h"

/** RFC 9162 §2.1.1: what the hash of a leaf and that of a node begin with. */
enum { LEAF = 0, NODE = 1 };

static bool hash_leaves(const unsigned char *bundle, size_t length, unsigned char hashes[TILE_WIDTH * HASH_BYTES]) {
  unsigned char leaf[1 + MAX_ENTRY_BYTES] = {LEAF};
  size_t at = 0;
  for (size_t index = 0; index < TILE_WIDTH; index++) {
    if (length - at < 2) return false;
    const size_t entry = (size_t)bundle[at] << 8 | bundle[at + 1];
    at += 2;
    if (entry > MAX_ENTRY_BYTES || length - at < entry) return false;
    memcpy(leaf + 1, bundle + at, entry);
    blst_sha256(hashes + index * HASH_BYTES, leaf, 1 + entry);
    at += entry;
  }
  return at == length;
}

bool bundle_root(const unsigned char *bundle, size_t length, unsigned char root[HASH_BYTES]) {
  unsigned char hashes[TILE_WIDTH * HASH_BYTES];
  unsigned char node[1 + 2 * HASH_BYTES] = {NODE};
  if (!hash_leaves(bundle, length, hashes)) return false;
  for (size_t width = TILE_WIDTH; width > 1; width /= 2) {
    for (size_t left = 0; left < width; left += 2) {
      memcpy(node + 1, hashes + left * HASH_BYTES, 2 * HASH_BYTES);
      blst_sha256(hashes + left / 2 * HASH_BYTES, node, sizeof node); // behind it, nothing is read again at this width
    }
  }
  memcpy(root, hashes, HASH_BYTES);
  return true;
}

static napi_value make_bundle_root(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  size_t length;
  REQUIRE(get_arguments(env, info, 2, arguments), "bundleRoot(bundle, root): two Uint8Arrays");
  const unsigned char *bundle = get_elements(env, arguments[0], napi_uint8_array, &length);
  unsigned char *root = get_bytes(env, arguments[1], HASH_BYTES);
  REQUIRE(bundle != NULL && root != NULL, "bundleRoot(bundle, root): bytes, and 32 bytes");
  if (!bundle_root(bundle, length, root)) napi_throw_range_error(env, NULL, "no full bundle");
  return NULL;
}

bool export_receipts(napi_env env, napi_value exports) {
  static const struct named_function functions[] = {{"bundleRoot", make_bundle_root}};
  return export_functions(env, exports, functions, sizeof functions / sizeof *functions);
}
