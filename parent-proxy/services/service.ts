// A service of the parent at a reserved vsock port.

export interface Service {
  /** Accept no more, cut what is open, and wait until it is closed. */
  close(): Promise<void>;
}
