// Which recipient of a ceremony is meant: by its number, as `strongroom ceremony plan` counts them, or in full.

import { CommandError } from './command.ts';

/** @returns its place in the list, from zero @throws CommandError */
export function recipientPosition(recipients: readonly string[], named: string): number {
  const at = /^[1-9]\d*$/.test(named) ? Number(named) - 1 : recipients.indexOf(named);
  if (at >= 0 && at < recipients.length) return at;
  throw new CommandError(
    `--recipient is none of the ceremony’s root_token_recipients: give its number, 1 to ${recipients.length}, or all of age1…`,
  );
}
