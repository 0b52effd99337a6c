// How an import tells of slashable messages: each by its key and place, and what became of it.

import { plural } from './printable.ts';
import { note, type Printed } from './terminal.ts';

export type Conflict = { readonly publicKey: string } & (
  | { readonly slot: number }
  | { readonly sourceEpoch: number; readonly targetEpoch: number }
);

export function sayConflicts(said: Pick<Printed, 'stderr'>, what: string, count: number, listed: readonly Conflict[]) {
  const [heading, ...records] = conflictLines(what, count, listed);
  if (heading === undefined) return;
  note(said, heading);
  for (const record of records) said.stderr.write(`${record}\n`);
}

function conflictLines(what: string, count: number, listed: readonly Conflict[]): string[] {
  if (count === 0) return [];
  const more = count > listed.length ? [`  and ${count - listed.length} more`] : [];
  return [
    `${what} and the records hold ${plural(count, 'slashable message')}; both are kept, so nothing is weakened:`,
    ...listed.map((conflict) => `  ${conflict.publicKey} ${place(conflict)}`),
    ...more,
    '  look for a second signer with these keys before you start this one',
  ];
}

function place(conflict: Conflict): string {
  if ('slot' in conflict) return `block at slot ${conflict.slot}`;
  return `vote with source epoch ${conflict.sourceEpoch}, target epoch ${conflict.targetEpoch}`;
}
