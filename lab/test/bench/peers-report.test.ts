// What the comparison of peers may say: no ratio while anything of either side failed or is not verified.

import { expect, it } from 'vitest';
import { type PeerFigure, type PeerRounds, ratiosOf, tableOf } from '../../bench/peers/report.ts';

const figure: PeerFigure = {
  ...{ requests: 100, failed: 0, signed: 100, verified: 100, perSecond: 4000, cpuMicroseconds: 250 },
  ...{ clientMicroseconds: 70, p50: 10, p99: 20, p999: 30, residentMegabytes: 200, failure: '' },
};
const half = { ...figure, perSecond: 2000, cpuMicroseconds: 500 };

function rounds(name: string, ...figures: readonly PeerFigure[]): PeerRounds {
  return { name, keeps: 'marks', figures, syncs: { syncCalls: 3, syncedWrites: 4 }, syncedSignatures: 100 };
}

it('says the ratio of each round when every signature of both was verified', () => {
  const [line] = ratiosOf(rounds('ours', figure, figure), rounds('Dirk', half, half));
  expect(line).toContain('signatures/s 2.00 (2.00 to 2.00)');
  expect(line).toContain('CPU 0.500 (0.500 to 0.500)');
});

it.each([
  ['one request failed', { failed: 1, signed: 99, verified: 99 }],
  ['one signature does not verify', { verified: 99 }],
  ['nothing was signed', { failed: 100, signed: 0, verified: 0 }],
  ['nothing was asked', { requests: 0, signed: 0, verified: 0 }],
])('says no ratio when %s, on either side', (_, change) => {
  const [clean, unclean] = [rounds('one', figure, figure), rounds('other', figure, { ...figure, ...change })];
  for (const [ours, peer] of [
    [clean, unclean],
    [unclean, clean],
  ] as const) {
    const lines = ratiosOf(ours, peer);
    expect(lines).toEqual([`  ${ours.name} : ${peer.name}: no ratio, for not all was signed by other`]);
  }
});

it('says no ratio when the rounds of a peer are missing', () => {
  expect(ratiosOf(rounds('ours', figure), rounds('Dirk')).join()).toContain('no ratio');
});

it('counts writes on descriptors with O_DSYNC beside fsyncs, for each peer', () => {
  const lines = tableOf('a load', [rounds('strongroom (sqlite)', figure), rounds('Dirk', half)]);
  const durable = lines.filter((line) => line.includes('durable'));
  expect(durable).toHaveLength(2);
  for (const line of durable) expect(line).toContain('3 fsyncs, 4 writes with O_DSYNC for 100 signatures: 0.070 each');
});
