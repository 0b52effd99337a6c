// Tests keep their stores in the folder for temporary files. Where that is tmpfs (Debian 13) or a container's own
// layer, a look says so; what else it says is the same everywhere.

export function withoutPlace(stderr: string): string {
  return stderr.replace(/^.*the slashing database lies on (?:tmpfs|overlayfs), .*\n/gm, '');
}
