// A native addon for tests only: makes single system calls, so that a filter can be asked about calls that JavaScript
// cannot make. Arguments that a test does not give are all ones, which no call can do anything with but refuse.
#include <node_api.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char *name;
  long number;
} calls[] = {
#define CALL(name) {#name, SYS_##name}
    // What has to be refused.
    CALL(execve), CALL(execveat), CALL(ptrace), CALL(process_vm_readv), CALL(process_vm_writev), CALL(process_madvise), CALL(kcmp),
    CALL(pidfd_getfd), CALL(mount), CALL(umount2), CALL(pivot_root), CALL(chroot), CALL(open_tree), CALL(move_mount), CALL(fsopen),
    CALL(fsconfig), CALL(fsmount), CALL(fspick), CALL(mount_setattr), CALL(mknodat), CALL(name_to_handle_at), CALL(open_by_handle_at),
    CALL(init_module), CALL(finit_module), CALL(delete_module), CALL(kexec_load), CALL(kexec_file_load), CALL(bpf),
    CALL(perf_event_open), CALL(userfaultfd), CALL(add_key), CALL(request_key), CALL(keyctl), CALL(fanotify_init), CALL(syslog),
    CALL(personality), CALL(io_uring_setup), CALL(io_uring_register), CALL(unshare), CALL(setns), CALL(clock_settime),
    CALL(settimeofday), CALL(adjtimex), CALL(clock_adjtime), CALL(reboot), CALL(swapon), CALL(swapoff), CALL(sethostname),
    CALL(setdomainname), CALL(acct), CALL(quotactl), CALL(vhangup), CALL(setuid), CALL(setgid), CALL(setresuid), CALL(setresgid),
    CALL(setgroups), CALL(capset),
#ifdef __x86_64__
    CALL(fork), CALL(vfork), CALL(mknod), CALL(iopl), CALL(ioperm), CALL(modify_ldt),
#endif
    // What is judged by its arguments, or allowed.
    CALL(clone), CALL(clone3), CALL(socket), CALL(socketpair), CALL(getpid), CALL(io_uring_enter),
};

static bool makes_a_process(long number) {
#ifdef __x86_64__
  if (number == SYS_fork || number == SYS_vfork) return true;
#endif
  return number == SYS_clone;
}

/** systemCall(number, first?, second?, third?): 0, or an errno. */
static napi_value system_call(napi_env env, napi_callback_info info) {
  size_t count = 4;
  napi_value given[4], result;
  int64_t numbers[4] = {-1, -1, -1, -1};
  napi_get_cb_info(env, info, &count, given, NULL, NULL);
  for (size_t index = 0; index < 4; index++) {
    int64_t number;
    if (napi_get_value_int64(env, given[index], &number) == napi_ok) numbers[index] = number;
  }
  const long outcome = syscall((long)numbers[0], numbers[1], numbers[2], numbers[3], -1L, -1L, -1L);
  const int error = outcome == -1 ? errno : 0;
  if (outcome == 0 && makes_a_process((long)numbers[0])) _exit(0); // the child that should not be
  napi_create_int32(env, error, &result);
  return result;
}

/** A call by another architecture's door: does not return under a filter that looks at architectures. */
static napi_value foreign_call(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
#ifdef __x86_64__
  long result = 20; // getpid of i386
  __asm__ __volatile__("int $0x80" : "+a"(result) : : "memory");
#endif
  return NULL;
}

NAPI_MODULE_INIT() {
  napi_value numbers, function;
  napi_create_object(env, &numbers);
  for (size_t index = 0; index < sizeof calls / sizeof *calls; index++) {
    napi_value number;
    napi_create_int64(env, calls[index].number, &number);
    napi_set_named_property(env, numbers, calls[index].name, number);
  }
  napi_set_named_property(env, exports, "numbers", numbers);
  napi_create_function(env, "systemCall", NAPI_AUTO_LENGTH, system_call, NULL, &function);
  napi_set_named_property(env, exports, "systemCall", function);
  napi_create_function(env, "foreignCall", NAPI_AUTO_LENGTH, foreign_call, NULL, &function);
  napi_set_named_property(env, exports, "foreignCall", function);
  return exports;
}
