// The first process of an enclave image: what each step does, and how it ends when one fails.
// A step that cannot be done ends the enclave: half a system must not hold keys.
#ifndef STRONGROOM_INIT_H
#define STRONGROOM_INIT_H

#include <sys/types.h>

/** The parent instance, unless the kernel's command line says otherwise (AWS, Nitro Enclaves: vsock). */
#define DEFAULT_PARENT_CID 3u

/** One line on the console. */
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Says what failed and the system's reason (errno), and ends the enclave. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/** Ends the enclave. */
void restart(void) __attribute__((noreturn));

/** @returns the bytes read, at most size - 1, with a NUL behind them; -1 and errno when there is no such file */
ssize_t read_text(const char *path, char *text, size_t size);

// mounts.c
void mount_file_systems(void);
/** Standard input, output and error, when the kernel found no console to open. */
void open_console(void);

// modules.c
void load_modules(void);

// settings.c
void set_up_kernel(void);
void limit_resources(void);
unsigned int parent_cid(void);
/** Whether the image states that its security module signs nothing: QEMU's nitro-enclave machine, for tests. */
int states_unsigned_evidence(void);

// network.c
void raise_loopback(void);

// entropy.c
void await_entropy(void);

// heartbeat.c
void send_heartbeat(unsigned int cid);

// signer.c
pid_t start_signer(unsigned int cid, int unsigned_evidence);
/** Reaps every child until the signer ends. @returns its status as waitpid() gives it */
int await_signer(pid_t signer);

#endif
