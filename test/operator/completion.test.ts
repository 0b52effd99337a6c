// The completion scripts: bash's is run in bash; zsh loads the same function, and fish's is held to the tree.

import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { completionScript } from '../../operator/completion.ts';
import { TREE } from '../../operator/tree.ts';
import { flagsOf, walk } from '../../operator/walk.ts';

/** What bash offers for the last word. */
function complete(...words: string[]): string[] {
  const quoted = ['strongroom', ...words].map((word) => `'${word}'`).join(' ');
  const script = `${completionScript('bash', TREE)}
COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}; _strongroom_operator; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync('bash', ['--norc', '-u', '-c', script], { encoding: 'utf8' });
  return output.split('\n').filter((word) => word !== '');
}

describe('bash', () => {
  it('follows the words down the tree', () => {
    expect(complete('op')).toEqual(['operator']);
    expect(complete('operator', '')).toEqual(Object.keys(TREE.commands));
    expect(complete('operator', 'auth', 'policy', 'de')).toEqual(['delete']);
    expect(complete('operator', 'auth', 'token', 'revoke', '--acc')).toEqual(['--accessor']);
  });

  it('is not led astray by flags and values that look like commands', () => {
    expect(complete('operator', 'auth', 'policy', 'get', '--name', 'seal', '--out')).toEqual(['--output']);
  });

  it('offers choices after their flag, and leaves free values to file names', () => {
    expect(complete('operator', 'status', '--output', '')).toEqual(['table', 'json']);
    expect(complete('operator', 'status', '--tls-ca', '')).toEqual([]);
    expect(complete('operator', 'completion', '')).toContain('zsh');
  });

  it('offers nothing for the other programs', () => {
    expect(complete('server', '--')).toEqual([]);
  });
});

describe('zsh and fish', () => {
  it('zsh loads the function of bash', () => {
    const script = completionScript('zsh', TREE);
    expect(script.startsWith('#compdef strongroom\nautoload -U +X bashcompinit && bashcompinit\n')).toBe(true);
    expect(script).toContain(completionScript('bash', TREE));
  });

  it('fish has every command and every flag of it', () => {
    const script = completionScript('fish', TREE);
    const offers = [...walk(TREE)].flatMap(({ path, node }) => {
      const place = `-n 'test (__strongroom_place) = /${['operator', ...path].join('/')}/'`;
      if (node.kind === 'group') return Object.keys(node.commands).map((word) => `${place} -f -a ${word} `);
      return Object.keys(flagsOf(node)).map((flag) => `${place} -l ${flag} `);
    });
    expect(offers.filter((offer) => !script.includes(offer))).toEqual([]);
  });
});
