// What `server.seccomp` asks for: system calls that the signer never needs are refused, for good, in every thread.
#ifndef STRONGROOM_SECCOMP_H
#define STRONGROOM_SECCOMP_H

/**
 * Install the filter in all threads of the process. 0, or an errno: ENOTSUP where there is no filter for this system.
 */
int install_system_call_filter(void);

#endif
