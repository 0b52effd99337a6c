// Traces of the model's stores, for the checker of traces (test/model/conformance.ts): what each was asked, by each of
// its signers and commands, until an older copy came in its place.

import { type TraceLine, tracedStore } from '../../../signer/slashing/traced-store.ts';
import type { KeptStore } from './stores.ts';

export interface FleetTrace {
  readonly lines: Map<string, { readonly isMarks: boolean; readonly lines: TraceLine[]; isOver: boolean }>;
}

const CALLS_OF_A_PROCESS = 1_000_000;

export function fleetTrace(): FleetTrace {
  return { lines: new Map() };
}

export function tracedKept<Store extends KeptStore>(store: Store, trace: FleetTrace | undefined): Store {
  if (trace === undefined) return store;
  const own = { isMarks: store.kind === 'dynamodb', lines: [] as TraceLine[], isOver: false };
  trace.lines.set(store.name, own);
  let opened = 0;
  return {
    ...store,
    async open(floorOf) {
      opened += 1;
      const first = opened * CALLS_OF_A_PROCESS;
      return tracedStore(await store.open(floorOf), (line) => {
        if (!own.isOver) own.lines.push({ ...line, call: first + line.call });
      });
    },
    restore(copy, how) {
      own.isOver = true;
      return store.restore(copy, how);
    },
  };
}
