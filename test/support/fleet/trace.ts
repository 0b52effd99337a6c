// Traces of the model's stores, for the checker of traces (test/model/conformance.ts): what each was asked, by each of
// its signers and commands, until an older copy came in its place, or the database lost commits.

import { type TraceLine, tracedStore } from '../../../signer/slashing/traced-store.ts';
import { type BindingTrace, bindingTrace } from './binding-trace.ts';
import type { FleetCluster } from './cluster.ts';
import type { FleetStore, KeptStore } from './stores.ts';

interface StoreLines {
  readonly isMarks: boolean;
  readonly lines: TraceLine[];
  isOver: boolean;
}

export interface FleetTrace {
  readonly lines: Map<string, StoreLines>;
  readonly binding: BindingTrace;
}

const CALLS_OF_A_PROCESS = 1_000_000;

export function fleetTrace(): FleetTrace {
  return { lines: new Map(), binding: bindingTrace() };
}

export function tracedKept<Store extends KeptStore>(store: Store, trace: FleetTrace | undefined): Store {
  if (trace === undefined) return store;
  const own = linesOf(store, trace);
  return {
    ...store,
    open: tracedOpen(store, own),
    restore(copy, how) {
      own.isOver = true;
      trace.binding.isOver = true;
      return store.restore(copy, how);
    },
  };
}

/** Until the database loses commits. */
export function tracedCluster(store: FleetStore, cluster: FleetCluster, trace: FleetTrace | undefined): FleetStore {
  if (trace === undefined) return store;
  const own = linesOf(store, trace);
  const open = tracedOpen(store, {
    ...own,
    get isOver() {
      return cluster.incident !== undefined;
    },
  });
  return { ...store, open };
}

function linesOf({ name, kind }: FleetStore, trace: FleetTrace): StoreLines {
  const own = { isMarks: kind === 'dynamodb', lines: [], isOver: false };
  trace.lines.set(name, own);
  return own;
}

function tracedOpen(store: FleetStore, own: Readonly<StoreLines>): FleetStore['open'] {
  let opened = 0;
  return async () => {
    opened += 1;
    const first = opened * CALLS_OF_A_PROCESS;
    return tracedStore(await store.open(), (line) => {
      if (!own.isOver) own.lines.push({ ...line, call: first + line.call });
    });
  };
}
