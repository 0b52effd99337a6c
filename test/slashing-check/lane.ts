// A process of `make check-slashing`: is told a half and, one after the other, seeds with numbers of messages. A
// parameter names the half; what came of a seed is sent back.

import { startDynamoDB } from '../../rehearsal/dynamodb.ts';
import { FleetCluster } from '../support/fleet/cluster.ts';
import { runWorld } from '../support/fleet/run.ts';
import { openClient } from '../support/fleet/sites.ts';
import { startPostgres } from '../support/postgres.ts';
import { runPrograms } from './programs.ts';

export type Half = 'programs' | 'worlds';

export interface Share {
  readonly seed: number;
  readonly messages: number;
}

export interface ShareResult {
  readonly asked: number;
  readonly outcomes: readonly (readonly [string, number])[];
  readonly events: readonly (readonly [string, number])[];
  readonly faults: readonly string[];
}

const SECONDS_BETWEEN_LINES = 10;

const dynamodb = await startDynamoDB();
interface Lane {
  run(share: Share): Promise<ShareResult>;
  close(): Promise<void>;
}

const lanes: Readonly<Record<Half, () => Promise<Lane>>> = {
  async worlds() {
    const services = { server: dynamodb, client: openClient(dynamodb), cluster: await FleetCluster.start() };
    const run: Lane['run'] = async (share) => {
      const { asked, moves, outcomes, violations } = await runWorld(share, services);
      return { asked, outcomes: [...outcomes], events: [['moves', moves]], faults: violations };
    };
    return { run, close: () => services.cluster.close() };
  },
  async programs() {
    const services = { dynamodb, postgres: await startPostgres() };
    const run: Lane['run'] = async (share) => {
      const { asked, outcomes, events, pairs, trespasses } = await runPrograms(
        { ...share, onProgress: progressOf(share) },
        services,
      );
      const faults = [...trespasses, ...pairs.map(({ offence, one }) => `${offence} of ${one.publicKey}`)];
      if ((outcomes.get('200') ?? 0) < asked / 100) faults.push('next to nothing was signed');
      return { asked, outcomes: [...outcomes], events: [...events], faults };
    };
    return { run, close: () => services.postgres.close() };
  },
};

function progressOf({ seed, messages }: Share): (asked: number, signed: number) => void {
  let last = performance.now();
  return (asked, signed) => {
    if (performance.now() - last < SECONDS_BETWEEN_LINES * 1000) return;
    last = performance.now();
    process.stdout.write(
      `programs: seed ${seed}, ${asked} of ${messages} messages, ${signed} signed, nothing slashable\n`,
    );
  };
}

const lane = await lanes[process.argv[2] as Half]();
process.on('message', (share: Share) => void lane.run(share).then((result) => process.send?.(result)));
process.once('disconnect', () => void lane.close().finally(() => process.exit()));
