// See sign.h. The cache evicts by the clock rule: a point enters unmarked and is marked when it is used again, so a
// flood of roots that are signed once does not push out the one that many keys sign.
#include "sign.h"

#include "memory.h"
#include "multiples.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Roots remembered; 320 bytes each. A slot has a handful of shared roots. */
enum { CACHED_POINTS = 128 };
/** A table costs what 6 to 8 signatures with it save; a root that is signed so often is signed more often still. */
enum { TABLE_AT_USE = 16 };
/**
 * Tables at most, 160 KB each: a slot's votes, those of the slot before, what is signed between them, and groups that
 * are under way together.
 */
enum { MAX_TABLES = 16 };
enum { SCALAR_BITS = 8 * sizeof(blst_scalar) };
_Static_assert((int)MAX_SIGNINGS <= (int)MAX_SCALARS, "signatures of one root are made together");

/** draft-irtf-cfrg-bls-signature-05 §4.2.3, the suite of the consensus specification. */
static const char DOMAIN_SEPARATION_TAG[] = "BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/** Shared by the cache and the threads that read it; the last one frees it. */
struct table {
  struct multiples *multiples;
  uint32_t holders;
};

struct cached_point {
  unsigned char root[ROOT_BYTES];
  blst_p2 point;
  uint32_t uses; // stops at TABLE_AT_USE
  bool filled;
  bool used_again;
};

struct cached_table {
  unsigned char root[ROOT_BYTES];
  struct table *table;
};

struct point_cache {
  pthread_mutex_t mutex;
  size_t hand;
  struct cached_point entries[CACHED_POINTS];
  bool makes_tables;
  size_t oldest_table;
  struct cached_table tables[MAX_TABLES];
};

struct point_cache *point_cache_open(bool makes_tables) {
  struct point_cache *cache = calloc(1, sizeof *cache);
  if (cache == NULL) return NULL;
  if (pthread_mutex_init(&cache->mutex, NULL) != 0) {
    free(cache);
    return NULL;
  }
  cache->makes_tables = makes_tables;
  return cache;
}

/** The caller holds the mutex, or no other thread has the cache any more. */
static void let_go(struct table *table) {
  if (table == NULL || --table->holders > 0) return;
  free(table->multiples);
  free(table);
}

void point_cache_close(struct point_cache *cache) {
  for (size_t index = 0; index < MAX_TABLES; index++) let_go(cache->tables[index].table);
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

static struct table *find_table(struct point_cache *cache, const unsigned char root[ROOT_BYTES]) {
  for (size_t index = 0; index < MAX_TABLES; index++) {
    struct cached_table *entry = &cache->tables[index];
    if (entry->table != NULL && memcmp(entry->root, root, ROOT_BYTES) == 0) return entry->table;
  }
  return NULL;
}

/** What is known of a root. */
struct look_up {
  bool found;          // `point` is its point
  bool is_worth_table; // told once, to the thread that is to make it
  struct table *table; // NULL, or to be let go of
  blst_p2 point;
};

/** @param uses that follow at once, this one among them */
static void look_up(struct point_cache *cache, const unsigned char root[ROOT_BYTES], uint32_t uses, struct look_up *known) {
  pthread_mutex_lock(&cache->mutex);
  struct cached_point *entry = find(cache, root);
  known->found = entry != NULL;
  known->is_worth_table = false;
  known->table = cache->makes_tables ? find_table(cache, root) : NULL;
  if (known->table != NULL) known->table->holders += 1;
  if (entry != NULL) {
    entry->used_again = true;
    known->point = entry->point;
    if (entry->uses < TABLE_AT_USE) {
      entry->uses = entry->uses + uses < TABLE_AT_USE ? entry->uses + uses : TABLE_AT_USE;
      known->is_worth_table = cache->makes_tables && known->table == NULL && entry->uses == TABLE_AT_USE;
    }
  }
  pthread_mutex_unlock(&cache->mutex);
}

/** NULL when there is no memory: then the root is signed without a table. The caller lets go of it. */
static struct table *remember_table(struct point_cache *cache, const unsigned char root[ROOT_BYTES], const blst_p2 *point) {
  struct table *table = malloc(sizeof *table);
  if (table == NULL) return NULL;
  table->multiples = multiples_of(point);
  if (table->multiples == NULL) {
    free(table);
    return NULL;
  }
  table->holders = 2; // the cache, and the caller
  pthread_mutex_lock(&cache->mutex);
  struct cached_table *entry = &cache->tables[cache->oldest_table];
  let_go(entry->table);
  memcpy(entry->root, root, ROOT_BYTES);
  entry->table = table;
  cache->oldest_table = (cache->oldest_table + 1) % MAX_TABLES;
  pthread_mutex_unlock(&cache->mutex);
  return table;
}

static void multiply_with_table(struct point_cache *cache, struct table *table, const struct signing *signings,
                                size_t count, blst_p2 products[]) {
  const blst_scalar *secrets[MAX_SIGNINGS];
  for (size_t index = 0; index < count; index++) secrets[index] = signings[index].secret;
  multiples_multiply(products, table->multiples, secrets, count);
  pthread_mutex_lock(&cache->mutex);
  let_go(table);
  pthread_mutex_unlock(&cache->mutex);
}

/**
 * @returns whether it is worth a table at once; told to one thread only, also when several have hashed the same root
 */
static bool remember(struct point_cache *cache, const unsigned char root[ROOT_BYTES], const blst_p2 *point, uint32_t uses) {
  pthread_mutex_lock(&cache->mutex);
  const bool is_new = find(cache, root) == NULL; // another thread may have hashed the same root meanwhile
  if (is_new) {
    while (cache->entries[cache->hand].used_again) {
      cache->entries[cache->hand].used_again = false;
      cache->hand = (cache->hand + 1) % CACHED_POINTS;
    }
    struct cached_point *entry = &cache->entries[cache->hand];
    memcpy(entry->root, root, ROOT_BYTES);
    entry->point = *point;
    entry->uses = uses < TABLE_AT_USE ? uses : TABLE_AT_USE;
    entry->filled = true;
    cache->hand = (cache->hand + 1) % CACHED_POINTS;
  }
  pthread_mutex_unlock(&cache->mutex);
  return is_new && cache->makes_tables && uses >= TABLE_AT_USE;
}

/** Of signings with one root. */
static void multiply(struct point_cache *cache, const struct signing *signings, size_t count, blst_p2 products[]) {
  const unsigned char *root = signings[0].root;
  const uint32_t uses = (uint32_t)count;
  struct look_up known;
  look_up(cache, root, uses, &known);
  if (!known.found && known.table == NULL) {
    blst_hash_to_g2(&known.point, root, ROOT_BYTES, (const unsigned char *)DOMAIN_SEPARATION_TAG,
                    sizeof DOMAIN_SEPARATION_TAG - 1, NULL, 0);
    known.is_worth_table = remember(cache, root, &known.point, uses);
  }
  if (known.is_worth_table) known.table = remember_table(cache, root, &known.point);
  if (known.table != NULL) multiply_with_table(cache, known.table, signings, count, products);
  else for (size_t index = 0; index < count; index++) {
    blst_p2_mult(&products[index], &known.point, signings[index].secret->b, SCALAR_BITS);
  }
}

/** How many have the root of the first, one after another. */
static size_t alike(const struct signing *signings, size_t count) {
  size_t same = 1;
  while (same < count && memcmp(signings[same].root, signings[0].root, ROOT_BYTES) == 0) same += 1;
  return same;
}

void sign_roots(struct point_cache *cache, const struct signing *signings, size_t count) {
  blst_p2 products[MAX_SIGNINGS];
  const blst_p2 *const first[] = {products, NULL}; // the others follow it
  blst_p2_affine affine[MAX_SIGNINGS];
  for (size_t index = 0; index < count;) {
    const size_t same = alike(&signings[index], count - index);
    multiply(cache, &signings[index], same, &products[index]);
    index += same;
  }
  // No product is the point at infinity, which would spoil the others: a secret is not zero, and the group's order is
  // prime.
  blst_p2s_to_affine(affine, first, count);
  wipe(products, count * sizeof *products); // their third coordinates tell of the secrets
  for (size_t index = 0; index < count; index++) blst_p2_affine_compress(signings[index].signature, &affine[index]);
}
