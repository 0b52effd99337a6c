// See sign.h. The cache evicts by the clock rule: a point enters unmarked and is marked when it is used again, so a flood of roots that
// are signed once does not push out the one that many keys sign.
#include "sign.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Roots remembered; 320 bytes each. A slot has a handful of shared roots. */
enum { CACHED_POINTS = 128 };

/** draft-irtf-cfrg-bls-signature-05 §4.2.3, the suite of the consensus specification. */
static const char DOMAIN_SEPARATION_TAG[] = "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

struct cached_point {
  unsigned char root[ROOT_BYTES];
  blst_p2 point;
  bool filled;
  bool used_again;
};

struct point_cache {
  pthread_mutex_t mutex;
  size_t hand;
  struct cached_point entries[CACHED_POINTS];
};

struct point_cache *point_cache_open(void) {
  struct point_cache *cache = calloc(1, sizeof *cache);
  if (cache == NULL) return NULL;
  if (pthread_mutex_init(&cache->mutex, NULL) != 0) {
    free(cache);
    return NULL;
  }
  return cache;
}

void point_cache_close(struct point_cache *cache) {
  pthread_mutex_destroy(&cache->mutex);
  free(cache);
}

static struct cached_point *find(struct point_cache *cache, const unsigned char root[ROOT_BYTES]) {
  for (size_t index = 0; index < CACHED_POINTS; index++) {
    struct cached_point *entry = &cache->entries[index];
    if (entry->filled && memcmp(entry->root, root, ROOT_BYTES) == 0) return entry;
  }
  return NULL;
}

static bool look_up(struct point_cache *cache, const unsigned char root[ROOT_BYTES], blst_p2 *point) {
  pthread_mutex_lock(&cache->mutex);
  struct cached_point *entry = find(cache, root);
  if (entry != NULL) {
    entry->used_again = true;
    *point = entry->point;
  }
  pthread_mutex_unlock(&cache->mutex);
  return entry != NULL;
}

static void remember(struct point_cache *cache, const unsigned char root[ROOT_BYTES], const blst_p2 *point) {
  pthread_mutex_lock(&cache->mutex);
  if (find(cache, root) == NULL) { // another thread may have hashed the same root meanwhile
    while (cache->entries[cache->hand].used_again) {
      cache->entries[cache->hand].used_again = false;
      cache->hand = (cache->hand + 1) % CACHED_POINTS;
    }
    struct cached_point *entry = &cache->entries[cache->hand];
    memcpy(entry->root, root, ROOT_BYTES);
    entry->point = *point;
    entry->filled = true;
    cache->hand = (cache->hand + 1) % CACHED_POINTS;
  }
  pthread_mutex_unlock(&cache->mutex);
}

void sign_root(struct point_cache *cache, const blst_scalar *secret, const unsigned char root[ROOT_BYTES],
               unsigned char signature[SIGNATURE_BYTES]) {
  blst_p2 point;
  if (!look_up(cache, root, &point)) {
    blst_hash_to_g2(&point, root, ROOT_BYTES, (const unsigned char *)DOMAIN_SEPARATION_TAG,
                    sizeof DOMAIN_SEPARATION_TAG - 1, NULL, 0);
    remember(cache, root, &point);
  }
  blst_p2_affine product;
  blst_sign_pk2_in_g1(NULL, &product, &point, secret);
  blst_p2_affine_compress(signature, &product);
}
