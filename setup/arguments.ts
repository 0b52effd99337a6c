// The configuration that every command of `strongroom setup` reads.

import type { Flags } from '../common/command-line/command.ts';

export const CONFIG = {
  config: { placeholder: 'FILE', short: 'c', required: true, meaning: "The signer's configuration" },
} as const satisfies Flags;
