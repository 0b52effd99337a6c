// Settings of the kernel, limits, and what the command line says.
#ifndef STRONGROOM_INIT_SETTINGS_H
#define STRONGROOM_INIT_SETTINGS_H

void set_up_kernel(void);
void limit_resources(void);
unsigned int parent_cid(void);

/** Whether the image states that its security module signs nothing: QEMU's nitro-enclave machine, for tests. */
int states_unsigned_evidence(void);

#endif
