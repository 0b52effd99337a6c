// What `make bench-peers` prints of its rounds: medians with the spread of the rounds, and a ratio only when nothing of
// either side failed and every signature verified.

import { median } from '../bars.ts';
import type { Syncs } from './processes.ts';

/** One load of one peer in one round. */
export interface PeerFigure {
  readonly requests: number;
  readonly failed: number;
  readonly signed: number;
  /** Of those signed. */
  readonly verified: number;
  readonly perSecond: number;
  /** Of the signer and its store. */
  readonly cpuMicroseconds: number;
  readonly clientMicroseconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly residentMegabytes: number;
  readonly failure: string;
}

export type Column = keyof typeof COLUMNS;
/** More is better of the first alone. */
const COLUMNS = {
  perSecond: 'signatures/s',
  cpuMicroseconds: 'CPU, us',
  p50: 'p50, ms',
  p99: 'p99, ms',
  p999: 'p99.9, ms',
  residentMegabytes: 'memory, MB',
  clientMicroseconds: 'client, us',
} as const;

export interface PeerRounds {
  readonly name: string;
  readonly keeps: string;
  readonly figures: readonly PeerFigure[];
  readonly syncs: Syncs | undefined;
  readonly syncedSignatures: number;
}

export function isClean({ figures }: Pick<PeerRounds, 'figures'>): boolean {
  return figures.length > 0 && figures.every(isCleanFigure);
}

function isCleanFigure({ requests, failed, signed, verified }: PeerFigure): boolean {
  return requests > 0 && failed === 0 && signed > 0 && verified === signed;
}

/** @param rounds of one load, ours first */
export function tableOf(load: string, rounds: readonly PeerRounds[]): string[] {
  const lines = [load, `  ${'median of rounds (least to most)'.padEnd(24)}`.trimEnd()];
  for (const one of rounds) {
    lines.push(`  ${one.name}, keeps ${one.keeps}: ${accountOf(one)}`);
    if (one.figures.every(({ signed }) => signed === 0)) continue;
    for (const column of columns()) lines.push(`    ${COLUMNS[column].padEnd(14)} ${spreadOf(one.figures, column)}`);
    lines.push(`    ${'durable'.padEnd(14)} ${syncsOf(one)}`);
  }
  const ours = rounds.filter(({ name }) => name.startsWith('strongroom'));
  for (const peer of rounds) if (!ours.includes(peer)) lines.push(...ours.flatMap((one) => ratiosOf(one, peer)));
  return lines;
}

export function ratiosOf(ours: PeerRounds, peer: PeerRounds): string[] {
  const unclean = [ours, peer].filter((one) => !isClean(one)).map(({ name }) => name);
  if (unclean.length > 0)
    return [`  ${ours.name} : ${peer.name}: no ratio, for not all was signed by ${unclean.join(' and ')}`];
  // Round by round: both were measured one right after the other.
  const pairs = ours.figures.map((figure, round) => [figure, peer.figures[round]] as const);
  const told = columns().map((column) => {
    const ratios = pairs.flatMap(([one, other]) => (other === undefined ? [] : [one[column] / other[column]]));
    return `${COLUMNS[column].split(',')[0]} ${spread(ratios)}`;
  });
  return [`  ${ours.name} : ${peer.name}, of each round: ${told.slice(0, -1).join('; ')}`];
}

function columns(): Column[] {
  return Object.keys(COLUMNS) as Column[];
}

function accountOf({ figures }: PeerRounds): string {
  const sum = (pick: (figure: PeerFigure) => number): number => figures.reduce((all, one) => all + pick(one), 0);
  const failed = sum((one) => one.failed);
  const told = `${sum((one) => one.requests)} requests, ${failed} failed; ${sum((one) => one.verified)} of ${sum((one) => one.signed)} signatures verified`;
  const why = figures.find(({ failure }) => failure !== '')?.failure;
  return why === undefined ? told : `${told} (${why.slice(0, 160)})`;
}

function syncsOf({ syncs, syncedSignatures }: PeerRounds): string {
  if (syncs === undefined) return 'not counted: strace is missing or may not attach';
  const each = (syncs.syncCalls + syncs.syncedWrites) / Math.max(1, syncedSignatures);
  return `${syncs.syncCalls} fsyncs, ${syncs.syncedWrites} writes with O_DSYNC for ${syncedSignatures} signatures: ${each.toPrecision(2)} each`;
}

function spreadOf(figures: readonly PeerFigure[], column: Column): string {
  return spread(figures.map((figure) => figure[column]));
}

function spread(numbers: readonly number[]): string {
  const text = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
  return `${text(median(numbers))} (${text(Math.min(...numbers))} to ${text(Math.max(...numbers))})`;
}
