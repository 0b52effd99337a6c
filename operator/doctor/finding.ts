// What `operator doctor` finds: one line a check, with what to do next where something is to be done.

import type { Paint } from '../../command-line/color.ts';
import { renderTable } from '../../command-line/table.ts';
import { plural } from '../../command-line/text.ts';
import { CommandFailure, type OperatorExitCode } from '../exit.ts';

export type FindingStatus = 'ok' | 'warn' | 'fail' | 'skipped';

export interface DoctorFinding {
  readonly check: string;
  readonly status: FindingStatus;
  readonly detail: string;
  /** What to do next; null where there is nothing to do. */
  readonly todo: string | null;
  /** What the command ends with when this is the first failure. */
  readonly exitCode?: OperatorExitCode;
}

export function ok(check: string, detail: string): DoctorFinding {
  return { check, status: 'ok', detail, todo: null };
}

export function warn(check: string, detail: string, todo: string): DoctorFinding {
  return { check, status: 'warn', detail, todo };
}

export function skipped(check: string, detail: string): DoctorFinding {
  return { check, status: 'skipped', detail, todo: null };
}

/** @param error rethrown unless it is a failure of the command: a bug is no finding */
export function fail(check: string, error: unknown, todo?: string): DoctorFinding {
  if (!(error instanceof CommandFailure)) throw error;
  const { exitCode, message, advice } = error;
  return { check, status: 'fail', detail: message, todo: todo ?? advice ?? 'see docs/guides/doctor.md', exitCode };
}

/** The worst of them. */
export function verdictOf(findings: readonly DoctorFinding[]): 'ok' | 'warn' | 'fail' {
  const has = (status: FindingStatus): boolean => findings.some((finding) => finding.status === status);
  return has('fail') ? 'fail' : has('warn') ? 'warn' : 'ok';
}

/** `what to do` stands under its line, so that a line is a check; the verdict comes last. */
export function renderFindings(
  findings: readonly DoctorFinding[],
  columns?: number,
  paint: Paint = (text) => text,
): string {
  const rows = findings.flatMap(({ check, status, detail, todo }) => [
    [check, status.toUpperCase(), detail],
    ...(todo === null ? [] : [['', '', `→ ${todo}`]]),
  ]);
  const table = renderTable(['CHECK', 'RESULT', 'WHAT WAS FOUND'], rows, columns);
  return `${table}\n${paint(`verdict  ${verdictText(findings)}\n`, TONES[verdictOf(findings)])}`;
}

const TONES = { ok: 'good', warn: 'doubtful', fail: 'bad' } as const;

function verdictText(findings: readonly DoctorFinding[]): string {
  const counted = (status: FindingStatus, words: string): string[] => {
    const count = findings.filter((finding) => finding.status === status).length;
    return count === 0 ? [] : [`${count} ${words}`];
  };
  const troubles = [...counted('fail', 'FAILED'), ...counted('warn', 'with a warning')];
  return troubles.length === 0
    ? 'nothing here keeps commands from working'
    : `of ${plural(findings.length, 'check')}: ${troubles.join(', ')}`;
}

export function findingsJson(findings: readonly DoctorFinding[]): string {
  const checks = findings.map(({ check, status, detail, todo }) => ({ check, status, detail, todo }));
  return JSON.stringify({ verdict: verdictOf(findings), checks });
}
