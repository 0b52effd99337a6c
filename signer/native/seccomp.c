// See seccomp.h. A list of refusals, not of permissions: V8, libuv, glibc and SQLite choose among many calls by kernel
// and by version, and a call that this list did not foresee must not fail in the middle of a commit. Refused is what
// smuggled-in code would reach for and the signer never needs. Answers are EPERM; ENOSYS only where a library then
// falls back to a call that can be judged. System calls: prctl(PR_SET_NO_NEW_PRIVS), seccomp(SECCOMP_SET_MODE_FILTER,
// SECCOMP_FILTER_FLAG_TSYNC).
#include "seccomp.h"

#include <errno.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
/** The bit of x32's calls (asm/unistd.h), which share the architecture's number and would slip past a list. */
#define X32_BIT 0x40000000u
#else
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

// Calls younger than the headers of some build machines (glibc 2.34). Since Linux 5.1 every architecture has the same
// numbers.
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif

/** mseal (Linux 6.10). Newer calls were not reviewed: they get ENOSYS, as on an older kernel. */
enum { NEWEST_KNOWN_CALL = 462 };

static const uint32_t refused_calls[] = {
    // Starting programs. Processes by way of clone are judged by their flags, below.
    SYS_execve, SYS_execveat,
    // Tracing, and other processes' memory and descriptors.
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_process_mrelease, SYS_kcmp,
    SYS_pidfd_getfd,
    // Mounts, roots, devices, files by their numbers.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount,
    SYS_fspick, SYS_mount_setattr, SYS_mknodat, SYS_name_to_handle_at, SYS_open_by_handle_at,
    // Code for the kernel, and other ways into it.
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_bpf, SYS_perf_event_open,
    SYS_userfaultfd, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_lookup_dcookie, SYS_fanotify_init, SYS_syslog, SYS_personality,
    // io_uring, whose operations do not pass through a filter: no new rings. Node's libuv has made one for its own
    // epoll calls before any filter and aborts when it may not enter it, so entering stays (docs/security.md, "The
    // system call filter").
    SYS_io_uring_setup, SYS_io_uring_register,
    // Namespaces.
    SYS_unshare, SYS_setns,
    // The clock: slots, certificates and attestation rest on it. adjtimex, which also reads it, is judged below.
    SYS_clock_settime, SYS_settimeofday, SYS_clock_adjtime,
    // The machine.
    SYS_reboot, SYS_swapon, SYS_swapoff, SYS_sethostname, SYS_setdomainname, SYS_acct, SYS_quotactl, SYS_quotactl_fd,
    SYS_vhangup,
    // Becoming another user: the service manager that starts the signer chooses its user.
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid, SYS_setgroups,
    SYS_capset,
#ifdef __x86_64__
    SYS_fork, SYS_vfork, SYS_mknod, SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS__sysctl, SYS_create_module,
#endif
};

/**
 * Unix, IPv4, IPv6, vsock; netlink too, but only to ask for addresses and routes (getaddrinfo, os.networkInterfaces).
 */
static const uint32_t socket_families[] = {AF_UNIX, AF_INET, AF_INET6, AF_VSOCK};

/** What no thread's clone has. */
#define NAMESPACE_FLAGS \
  (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof *(array))
#define MAX_INSTRUCTIONS (2 * ARRAY_LENGTH(refused_calls) + 64)
_Static_assert(MAX_INSTRUCTIONS <= BPF_MAXINSNS, "the filter fits the kernel's limit");

#define REFUSE (SECCOMP_RET_ERRNO | EPERM)
#define UNKNOWN (SECCOMP_RET_ERRNO | ENOSYS)

struct filter {
  struct sock_filter instructions[MAX_INSTRUCTIONS];
  unsigned short length;
};

static void add(struct filter *filter, struct sock_filter instruction) {
  if (filter->length < MAX_INSTRUCTIONS) filter->instructions[filter->length++] = instruction;
}

static void load(struct filter *filter, size_t offset) {
  add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/** The lower half of an argument, where the kernel's `int` arguments are. Both architectures are little-endian. */
static void load_argument(struct filter *filter, size_t index) {
  load(filter, offsetof(struct seccomp_data, args) + index * sizeof(uint64_t));
}

static void answer(struct filter *filter, uint32_t action) {
  add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/** The next `skipped` instructions are for what does (BPF_JEQ, BPF_JGE, BPF_JSET) compare so, and for nothing else. */
static void only_if(struct filter *filter, uint16_t comparison, uint32_t value, uint8_t skipped) {
  add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, 0, skipped));
}

static void answer_if(struct filter *filter, uint16_t comparison, uint32_t value, uint32_t action) {
  only_if(filter, comparison, value, 1);
  answer(filter, action);
}

/**
 * On another architecture the same numbers mean other calls. The signer makes none of them, so a process that does is
 * killed.
 */
static void judge_architecture(struct filter *filter) {
  load(filter, offsetof(struct seccomp_data, arch));
  add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCHITECTURE, 1, 0));
  answer(filter, SECCOMP_RET_KILL_PROCESS);
}

static void judge_number(struct filter *filter) {
  load(filter, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
  answer_if(filter, BPF_JGE, X32_BIT, REFUSE);
#endif
  answer_if(filter, BPF_JGT, NEWEST_KNOWN_CALL, UNKNOWN);
  for (size_t index = 0; index < ARRAY_LENGTH(refused_calls); index++) {
    answer_if(filter, BPF_JEQ, refused_calls[index], REFUSE);
  }
}

/**
 * The flags of clone3 lie in memory, out of a filter's sight: glibc falls back to clone on ENOSYS (as under Docker's
 * filter).
 */
static void judge_clone(struct filter *filter) {
  answer_if(filter, BPF_JEQ, SYS_clone3, UNKNOWN);
  only_if(filter, BPF_JEQ, SYS_clone, 6);
  load_argument(filter, 0);
  answer_if(filter, BPF_JSET, NAMESPACE_FLAGS, REFUSE);
  add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
  answer(filter, REFUSE); // a process, not a thread
  answer(filter, SECCOMP_RET_ALLOW);
}

static void judge_socket(struct filter *filter, uint32_t call) {
  const uint8_t length = (uint8_t)(1 + 2 * ARRAY_LENGTH(socket_families) + 5);
  only_if(filter, BPF_JEQ, call, length);
  load_argument(filter, 0);
  for (size_t index = 0; index < ARRAY_LENGTH(socket_families); index++) {
    answer_if(filter, BPF_JEQ, socket_families[index], SECCOMP_RET_ALLOW);
  }
  only_if(filter, BPF_JEQ, AF_NETLINK, 3);
  load_argument(filter, 2);
  answer_if(filter, BPF_JEQ, NETLINK_ROUTE, SECCOMP_RET_ALLOW);
  answer(filter, REFUSE);
}

/**
 * Of this thread, and so of those that it starts; nothing here gains one later. What cannot be asked is taken for yes.
 */
static bool may_set_clock(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, sets) != 0) return true;
  return (sets[CAP_TO_INDEX(CAP_SYS_TIME)].permitted & CAP_TO_MASK(CAP_SYS_TIME)) != 0;
}

/**
 * Whether it reads or sets lies in memory, out of a filter's sight. Without CAP_SYS_TIME the kernel lets it read only
 * (kernelClock); with it the call is refused.
 */
static void judge_adjtimex(struct filter *filter) {
  if (may_set_clock()) answer_if(filter, BPF_JEQ, SYS_adjtimex, REFUSE);
}

int install_system_call_filter(void) {
  struct filter filter = {.length = 0};
  judge_architecture(&filter);
  judge_number(&filter);
  judge_adjtimex(&filter);
  judge_clone(&filter);
  judge_socket(&filter, SYS_socket);
  judge_socket(&filter, SYS_socketpair);
  answer(&filter, SECCOMP_RET_ALLOW);
  if (filter.length == MAX_INSTRUCTIONS) return E2BIG; // cut off somewhere

  // Without privileges a filter may only bind programs that cannot gain any (seccomp(2)).
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  const struct sock_fprog program = {.len = filter.length, .filter = filter.instructions};
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (result > 0) return EBUSY; // the thread with this number has a filter of its own that ours does not descend from
  return result == 0 ? 0 : errno;
}

#else

int install_system_call_filter(void) {
  return ENOTSUP;
}

#endif
