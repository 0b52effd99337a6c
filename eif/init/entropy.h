// The random numbers of the kernel.
#ifndef STRONGROOM_INIT_ENTROPY_H
#define STRONGROOM_INIT_ENTROPY_H

void await_entropy(void);

#endif
