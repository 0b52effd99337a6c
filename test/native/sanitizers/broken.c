// What `make check-sanitizers` has to find: without it, nobody knows whether the sanitizers look. The build includes it
// in front of signer/native/sign.c (no lock) or of signer/native/keyring.c (too little memory), and in no other.
#ifdef BROKEN_LOCKS
#include <pthread.h>
#define pthread_mutex_lock(mutex) (void)(mutex)
#define pthread_mutex_unlock(mutex) (void)(mutex)
#endif
#ifdef BROKEN_MEMORY
#include <stdlib.h>
#define calloc(count, size) malloc((count) * (size) - 8)
#endif
