// What eif/init calls instead of the kernel, for every file of it (-include): files, sockets and waiting come from
// the input of the fuzzer, and nothing of this machine is touched. No vsock is opened and no module loaded.
#ifndef STRONGROOM_FUZZ_INIT_H
#define STRONGROOM_FUZZ_INIT_H

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int input_open(const char *path, int flags, ...);
int input_close(int file);
ssize_t input_read(int file, void *bytes, size_t length);
ssize_t input_write(int file, const void *bytes, size_t length);
long input_syscall(long number, ...);
ssize_t input_getrandom(void *bytes, size_t length, unsigned int flags);
int input_nanosleep(const struct timespec *wanted, struct timespec *left);
int input_socket(int family, int type, int protocol);
int input_setsockopt(int stream, int level, int name, const void *value, socklen_t length);
int input_connect(int stream, const struct sockaddr *address, socklen_t length);
ssize_t input_send(int stream, const void *bytes, size_t length, int flags);
ssize_t input_recv(int stream, void *bytes, size_t length, int flags);

#define open input_open
#define close input_close
#define read input_read
#define write input_write
#define syscall input_syscall
#define getrandom input_getrandom
#define nanosleep input_nanosleep
#define socket input_socket
#define setsockopt input_setsockopt
#define connect input_connect
#define send input_send
#define recv input_recv

#endif
