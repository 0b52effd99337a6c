// What `operator doctor` finds: one line a check, with what to do next where something is to be done.

import { type Paint, paintResults } from '../../common/command-line/paint.ts';
import { plural } from '../../common/command-line/printable.ts';
import { renderTable } from '../../common/command-line/table.ts';
import type { CommandFailure, OperatorExitCode } from '../exit.ts';

type FindingStatus = 'ok' | 'warn' | 'fail' | 'skipped';

export interface DoctorFinding {
  readonly check: string;
  readonly status: FindingStatus;
  readonly detail: string;
  readonly todo: string | null;
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

/** In the words of every command that fails so. */
export function fail(check: string, { exitCode, message, advice }: CommandFailure): DoctorFinding {
  return { check, status: 'fail', detail: message, todo: advice ?? 'see docs/guides/doctor.md', exitCode };
}

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
  const plain = renderTable(['CHECK', 'RESULT', 'WHAT WAS FOUND'], rows, columns);
  const table = paintResults(plain, { OK: 'good', WARN: 'doubtful', FAIL: 'bad' }, paint);
  return `${table}\n${paint(`verdict  ${verdictText(findings)}\n`, TONES[verdictOf(findings)])}`;
}

const TONES = { ok: 'good', warn: 'doubtful', fail: 'bad' } as const;

function verdictText(findings: readonly DoctorFinding[]): string {
  const counted = (status: FindingStatus, words: string): string[] => {
    const count = findings.filter((finding) => finding.status === status).length;
    return count === 0 ? [] : [`${count} ${words}`];
  };
  const warnings = findings.filter(({ status }) => status === 'warn').length;
  const troubles = [...counted('fail', 'FAILED'), ...counted('warn', 'with a warning')];
  if (verdictOf(findings) === 'fail') return `of ${plural(findings.length, 'check')}: ${troubles.join(', ')}`;
  return `commands work from here${warnings === 0 ? '' : `; ${plural(warnings, 'warning')}`}`;
}

export function findingsJson(findings: readonly DoctorFinding[]): string {
  const checks = findings.map(({ check, status, detail, todo }) => ({ check, status, detail, todo }));
  return JSON.stringify({ verdict: verdictOf(findings), checks });
}
