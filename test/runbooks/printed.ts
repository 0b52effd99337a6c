// What `strongroom setup` prints, in this process: the policies that an account has before a page begins.

import { PassThrough } from 'node:stream';
import { main as setup } from '../../setup/main.ts';
import type { PolicyDocument } from '../../setup/policy-document.ts';

/** @throws Error with what it said instead */
export async function printed(...argv: readonly string[]): Promise<PolicyDocument> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  await setup(argv, { env: {}, stdout, stderr });
  const said = stdout.read() as Buffer | null;
  if (said === null) throw new Error(String(stderr.read()));
  return JSON.parse(said.toString()) as PolicyDocument;
}
