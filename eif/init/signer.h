// The signer as a child of the first process.
#ifndef STRONGROOM_INIT_SIGNER_H
#define STRONGROOM_INIT_SIGNER_H

#include <sys/types.h>

pid_t start_signer(unsigned int cid, int unsigned_evidence);

/** Reaps every child until the signer ends. @returns its status as waitpid() gives it */
int await_signer(pid_t signer);

#endif
