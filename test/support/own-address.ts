// Loopback addresses of this process's own. Two files of tests run beside each other in one network: at 127.0.0.1 a
// port that was closed may be another's at once, as a listener or as the port that a client calls from. Here it stays
// closed until this process opens it again.

/** @param number from 2 to 254. macOS has 127.0.0.1 only, without that assurance. */
export function ownAddress(number: number): string {
  if (process.platform !== 'linux') return '127.0.0.1';
  const { pid } = process;
  return `127.${64 + ((pid >> 8) & 0x7f)}.${pid & 0xff}.${number}`;
}
