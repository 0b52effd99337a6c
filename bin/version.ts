// `strongroom --version`. The commit of a release is written into it; that of a checkout is asked of git.

import { spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { VERSION_LINE } from '../signer/api/version.ts';

const UNKNOWN = /\bunknown$/m;

export function versionLine(): string {
  return UNKNOWN.test(VERSION_LINE) ? VERSION_LINE.replace(UNKNOWN, commitOfCheckout() ?? 'unknown') : VERSION_LINE;
}

/** With `-modified`, as builds say it, when the checkout has anything that the commit has not. */
function commitOfCheckout(): string | undefined {
  if (git('rev-parse', '--show-prefix') !== '') return undefined; // a folder in a checkout of others
  const commit = git('rev-parse', 'HEAD');
  const changes = git('status', '--porcelain');
  if (commit === undefined || changes === undefined) return undefined;
  return changes === '' ? commit : `${commit}-modified`;
}

function git(...args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('git', ['-C', dirname(dirname(process.argv[1] ?? '')), ...args], {
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : undefined;
}
