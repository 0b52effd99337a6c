// What every step of the first process says, and how it ends when one fails.
// A step that cannot be done ends the enclave: half a system must not hold keys.
#ifndef STRONGROOM_INIT_REPORT_H
#define STRONGROOM_INIT_REPORT_H

/** One line on the console. */
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Says what failed and the system's reason (errno), and ends the enclave. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/** Ends the enclave. */
void restart(void) __attribute__((noreturn));

#endif
