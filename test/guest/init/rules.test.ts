// The one rule of the first process that not every kernel can show.

import { expect, it } from 'vitest';
import { NotApplicable } from '../suite.ts';
import { WITH_A_PARENT } from './rules.ts';

const rule = WITH_A_PARENT.find(({ name }) => name.includes('io_uring'));

function judge(setting: string, release: string): void {
  const lines = [
    `node: /proc/sys/kernel/io_uring_disabled: ${setting}`,
    `node: /proc/sys/kernel/osrelease: ${release}`,
  ];
  rule?.check(lines, { inTime: true, exitCode: 0, seconds: 1 });
}

it('io_uring is off; where the kernel has no such setting that is skipped, and where it should have one it fails', () => {
  expect(rule).toBeDefined();
  expect(() => judge('2', '6.12.1-cloud')).not.toThrow();
  expect(() => judge('none', '6.1.0-41-cloud-amd64')).toThrow(NotApplicable);
  for (const [setting, release] of [
    ['none', '6.6.1'],
    ['none', '7.0.0'],
    ['none', 'unknown'],
    ['0', '6.1.0'],
    ['1', '6.12.1'],
  ] as const) {
    expect(() => judge(setting, release)).toThrow(expect.not.objectContaining({ constructor: NotApplicable }));
  }
});
