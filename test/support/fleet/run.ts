// Runs one world of the model from its beginning to its end, and says what came of it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DynamoDBServer } from '../../../rehearsal/dynamodb.ts';
import type { DynamoDBClient } from '../../../signer/aws/dynamodb.ts';
import type { FleetCluster } from './cluster.ts';
import { randomEvent } from './events.ts';
import type { Missing } from './gate.ts';
import { fleetKeys } from './keys.ts';
import { violationsIn } from './report.ts';
import { openSites } from './sites.ts';
import type { FleetTrace } from './trace.ts';
import { FleetWorld } from './world.ts';

/** Steps between two looks of a world that goes without a protection: it ends with the first pair. */
const STEPS_BETWEEN_LOOKS = 10;

export interface WorldOptions {
  readonly seed: number;
  readonly messages: number;
  readonly missing?: Missing | undefined;
  readonly trace?: FleetTrace | undefined;
}

export interface WorldResult {
  readonly asked: number;
  readonly outcomes: ReadonlyMap<string, number>;
  /** Keys that came from one place to another. */
  readonly moves: number;
  /** Empty when nobody could be slashed. */
  readonly violations: readonly string[];
}

export interface WorldServices {
  readonly server: DynamoDBServer;
  readonly client: DynamoDBClient;
  readonly cluster: FleetCluster;
}

let worlds = 0;

export async function runWorld(options: WorldOptions, services: WorldServices): Promise<WorldResult> {
  const { seed, messages, missing, trace } = options;
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-fleet-'));
  const keys = fleetKeys();
  const world = new FleetWorld({ seed, missing }, keys, randomEvent);
  const isDecided = () =>
    missing !== undefined && world.step % STEPS_BETWEEN_LOOKS === 0 && violationsIn(world).length > 0;
  try {
    worlds += 1;
    const id = `fleet-${seed}-${worlds}`;
    const onReleased = world.release.bind(world);
    world.sites = await openSites({ ...services, directory, id, time: world.time, keys, missing, onReleased, trace });
    await world.begin();
    while (world.asked < messages && !isDecided()) await world.live();
    await world.settle();
    const { asked, outcomes, moves } = world;
    return { asked, outcomes, moves, violations: violationsIn(world) };
  } catch (error) {
    throw new Error(`the world of seed ${seed} broke at step ${world.step}`, { cause: error });
  } finally {
    await world.end();
    await keys.close();
    rmSync(directory, { recursive: true, force: true });
  }
}
