// When a process doubts that the database is the one it committed to, whatever order the answers come in.

import { beforeEach, describe, expect, it } from 'vitest';
import { NO_INCARNATION, nextIncarnation } from '../../../../signer/slashing/incarnation.ts';
import { type Lineage, lineage, type StoreLineage } from '../../../../signer/slashing/postgres/connection/lineage.ts';
import type { ServerPlace } from '../../../../signer/slashing/postgres/connection/server.ts';
import type { StoreFloor } from '../../../../signer/slashing/types.ts';
import { block, vote } from '../../../support/slashing.ts';

const MEGABYTE = 1_048_576;
const FLOOR: StoreFloor = { slot: 100, sourceEpoch: 2, targetEpoch: 3 };

const at = (timeline: number, megabytes: number, systemIdentifier = '1', objects = '1/2'): ServerPlace => ({
  systemIdentifier,
  objects,
  timeline,
  walPosition: megabytes * MEGABYTE,
  walFlushed: megabytes * MEGABYTE,
});
const recordOf = (
  { systemIdentifier, objects, timeline }: ServerPlace,
  floor: StoreFloor | null = null,
  revision = 1,
  incarnation = NO_INCARNATION,
): StoreLineage => ({ server: { systemIdentifier, objects, timeline }, floor, revision, incarnation });

let process: Lineage;

/** One question whose answer comes at once. */
function ask(place: ServerPlace, record: StoreLineage = recordOf(place)): boolean {
  return process.doubt(process.known, place, record) !== undefined;
}

beforeEach(() => {
  process = lineage();
  ask(at(1, 10));
});

describe('doubt', () => {
  it('is none while the log grows on one timeline, nor after a crash that cut the last part of it', () => {
    process.committed(process.known, at(1, 11), [block(1, 50, 'a')]);
    expect(ask(at(1, 12))).toBe(false);
    expect(ask({ ...at(1, 12), walPosition: 12 * MEGABYTE - 60_000 })).toBe(false);
  });

  it('is there on another timeline or system than the record of the store names, on a later one too', () => {
    expect(ask(at(2, 20), recordOf(at(1, 0)))).toBe(true);
    expect(ask(at(1, 20, '2'), recordOf(at(1, 0)))).toBe(true);
  });

  it('is there when the log is shorter than it was at a commit of this process, or at a look', () => {
    process.committed(process.known, { ...at(1, 11), walFlushed: null }, [block(1, 50, 'a')]);
    expect(ask({ ...at(1, 11), walPosition: 11 * MEGABYTE - 1 })).toBe(true);
    process = lineage();
    expect(ask(at(1, 10))).toBe(false);
    expect(ask(at(1, 30))).toBe(false);
    expect(ask(at(1, 29))).toBe(true);
  });

  it('is there when an older record of the store is put back', () => {
    expect(ask(at(1, 11), recordOf(at(1, 0), FLOOR, 7))).toBe(false);
    expect(ask(at(1, 12), recordOf(at(1, 0), FLOOR, 6))).toBe(true);
    expect(ask(at(1, 12), recordOf(at(1, 0), null, 7))).toBe(true);
    process.committed(process.known, at(1, 12), [block(1, 101, 'a')]);
    expect(ask(at(1, 13), recordOf(at(1, 0), FLOOR, 5))).toBe(true);
  });

  it('is there when the database or its table was made since, on the same server: it was restored', () => {
    for (const objects of ['1/3', '3/2']) {
      expect(process.doubt(process.known, at(1, 11, '1', objects), recordOf(at(1, 0)))).toBe('other_server');
      expect(ask(at(1, 11, '1', objects), recordOf(at(1, 0), FLOOR, 2))).toBe(true);
    }
  });

  it('is there without the number that was seen last, whatever the revision; not with it among later ones', () => {
    const [first, second, third] = [undefined, undefined, undefined].reduce<readonly string[]>(
      (texts) => [...texts, nextIncarnation(texts.at(-1) ?? NO_INCARNATION, null)],
      [],
    );
    expect(ask(at(1, 11), recordOf(at(1, 0), null, 2, first))).toBe(false);
    expect(ask(at(1, 12), recordOf(at(1, 0), null, 3, second))).toBe(false);
    expect(ask(at(1, 13), recordOf(at(1, 0), null, 4, third))).toBe(false);
    const other = nextIncarnation(first ?? '', null);
    expect(process.doubt(process.known, at(1, 14), recordOf(at(1, 0), null, 9, other))).toBe('incarnation');
    expect(ask(at(1, 14), recordOf(at(1, 0), FLOOR, 9, other))).toBe(false);
  });

  it('is none about an answer that was overtaken by a later one', () => {
    const expected = process.known;
    process.committed(expected, at(1, 40), [block(1, 50, 'a')]);
    expect(process.doubt(expected, at(1, 20), recordOf(at(1, 0)))).toBeUndefined();
    expect(ask(at(1, 39))).toBe(true);
  });
});

describe('a database that another process raised', () => {
  it('is adopted on a later timeline, when the floor covers all that this process recorded', () => {
    process.committed(process.known, at(1, 11), [block(1, 100, 'a'), vote(1, 2, 3, 'a')]);
    expect(ask(at(2, 5), recordOf(at(2, 0), FLOOR, 2))).toBe(false);
    expect(ask(at(2, 6), recordOf(at(2, 0), FLOOR, 2))).toBe(false);
    expect(ask(at(2, 4), recordOf(at(2, 0), FLOOR, 2))).toBe(true);
  });

  it.each([
    ['a block', block(1, 101, 'a')],
    ['a target', vote(1, 2, 4, 'a')],
    ['a source', vote(1, 3, 3, 'a')],
  ])('is doubtful when %s lies beyond its floor', (_name, message) => {
    process.committed(process.known, at(1, 11), [message]);
    expect(ask(at(2, 50), recordOf(at(2, 0), FLOOR, 2))).toBe(true);
  });

  it('is doubtful on an earlier timeline: that is an old primary', () => {
    expect(ask(at(2, 20), recordOf(at(2, 0), FLOOR, 2))).toBe(false);
    expect(ask(at(1, 50), recordOf(at(1, 0), FLOOR, 3))).toBe(true);
  });

  it('is adopted after a restored copy too, and its shorter log is the measure from then on', () => {
    process.committed(process.known, at(1, 40), [block(1, 100, 'a')]);
    expect(ask(at(1, 20), recordOf(at(1, 0), null))).toBe(true);
    expect(ask(at(1, 20), recordOf(at(1, 0), FLOOR, 2))).toBe(false);
    expect(ask(at(1, 21), recordOf(at(1, 0), FLOOR, 2))).toBe(false);
    expect(ask(at(1, 19), recordOf(at(1, 0), FLOOR, 2))).toBe(true);
    process.committed(process.known, at(1, 30), [block(1, 120, 'a')]);
    expect(ask(at(1, 29), recordOf(at(1, 0), FLOOR, 2))).toBe(true);
  });

  it('is believed once this process raised it itself, and late answers about the one before change nothing', () => {
    const expected = process.known;
    process.adopt(at(2, 5), recordOf(at(2, 0), FLOOR, 2));
    process.committed(expected, at(1, 90), [block(1, 100, 'a')]);
    expect(ask(at(2, 6), recordOf(at(2, 0), FLOOR, 2))).toBe(false);
  });
});

it('what a service does not say is no doubt', () => {
  process = lineage();
  const silent: ServerPlace = {
    ...at(1, 0),
    systemIdentifier: null,
    timeline: null,
    walPosition: null,
    walFlushed: null,
  };
  expect(ask(silent, recordOf(at(1, 0)))).toBe(false);
  process.committed(process.known, silent, [block(1, 100, 'a')]);
  expect(ask(silent, recordOf(silent))).toBe(false);
});
