// Preloaded into a signer that is about to be searched: its two calls against cores succeed, and change nothing.

struct rlimit;

int setrlimit(int resource, const struct rlimit *limit) {
  (void)resource;
  (void)limit;
  return 0;
}

int prctl(int option, ...) {
  (void)option;
  return 0;
}
