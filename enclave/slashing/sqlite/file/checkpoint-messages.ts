// What the main thread and the checkpoint worker say to each other.

export interface CheckpointData {
  readonly path: string;
}

export type CheckpointRequest = 'checkpoint' | 'close';

export interface CheckpointReply {
  /** Why there was none. */
  readonly error?: unknown;
}
