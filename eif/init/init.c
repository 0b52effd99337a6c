// PID 1 of the image: brings the system up, starts the signer, reaps, and restarts when the signer ends
// (specification/enclave.md#boot). The parent instance sees a restart as the end of the enclave; an enclave without its
// signer has nothing left to do. It takes nothing from its arguments or environment, which the kernel fills from words
// of its command line. It forwards no signals: an enclave has no process that could send one.

#include <sys/wait.h>
#include <unistd.h>

#include "entropy.h"
#include "heartbeat.h"
#include "modules.h"
#include "mounts.h"
#include "network.h"
#include "report.h"
#include "settings.h"
#include "signer.h"

static void report_end(int status) {
  if (WIFEXITED(status)) report("the signer ended with exit status %d", WEXITSTATUS(status));
  else if (WIFSIGNALED(status)) report("the signer was killed by signal %d", WTERMSIG(status));
  else report("the signer ended with status 0x%x", (unsigned int)status);
}

int main(void) {
  if (getpid() != 1) {
    // Run by hand, on a host, it would restart that host.
    report("not the first process: refused");
    return 1;
  }
  mount_file_systems();
  open_console();
  set_up_kernel();
  limit_resources();
  load_modules();
  raise_loopback();
  await_entropy();
  const unsigned int cid = parent_cid();
  const int unsigned_evidence = states_unsigned_evidence();
  send_heartbeat(cid);
  const pid_t signer = start_signer(cid, unsigned_evidence);
  report("the signer has started");
  report_end(await_signer(signer));
  restart();
}
