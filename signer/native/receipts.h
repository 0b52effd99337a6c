// The hashes of a log of receipts (RFC 9162 §2.1.1), by blst's SHA-256. The log makes its bundles itself; one of
// another form is refused all the same.
#ifndef STRONGROOM_RECEIPTS_H
#define STRONGROOM_RECEIPTS_H

#include <node_api.h>

#include <stdbool.h>
#include <stddef.h>

/** A tile of the tree, and the longest entry (common/receipts/tree.ts, common/receipts/entry.ts). */
#define TILE_WIDTH 256
#define MAX_ENTRY_BYTES 320
#define HASH_BYTES 32

/**
 * @param bundle a full one: 256 times two bytes of length and an entry, and nothing behind them
 * @param root of the perfect subtree over its entries
 * @return false for bytes that are no full bundle; then the root is worth nothing
 */
bool bundle_root(const unsigned char *bundle, size_t length, unsigned char root[HASH_BYTES]);

bool export_receipts(napi_env env, napi_value exports);

#endif
