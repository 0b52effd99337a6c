// What eif/init calls instead of the kernel, for every file of it that ESBMC looks at (-include): as init.h for the
// fuzzer, and what the checker's own headers lack.
#ifndef STRONGROOM_PROOF_H
#define STRONGROOM_PROOF_H

#include <stddef.h>
#include <sys/types.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

char *strtok_r(char *text, const char *separators, char **rest);
int input_open(const char *path, int flags, ...);
int input_close(int file);
ssize_t input_read(int file, void *bytes, size_t length);
ssize_t input_write(int file, const void *bytes, size_t length);
int input_nanosleep(const struct timespec *wanted, struct timespec *left);
int input_socket(int family, int type, int protocol);
int input_setsockopt(int stream, int level, int name, const void *value, socklen_t length);
int input_connect(int stream, const struct sockaddr *address, socklen_t length);
ssize_t input_send(int stream, const void *bytes, size_t length, int flags);
ssize_t input_recv(int stream, void *bytes, size_t length, int flags);

#define AF_VSOCK 40
#define SO_RCVTIMEO 20
#define SOCK_CLOEXEC 02000000
#define MSG_NOSIGNAL 0x4000
#define open input_open
#define close input_close
#define read input_read
#define write input_write
#define nanosleep input_nanosleep
#define socket input_socket
#define setsockopt input_setsockopt
#define connect input_connect
#define send input_send
#define recv input_recv

#endif
