// The parent proxy of a release asks the AWS SDK's chain for credentials, which it loads only then: a package of
// CommonJS, which Node.js imports by its names and a bundle does not.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { devNull, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { bundleProgram, MAIN_FILE } from '../../eif/bundle/bundle.ts';
import { defaultChain } from '../../parent-proxy/services/instance-credentials.ts';
import { addonForTests } from '../support/addon.ts';

const ROOT = join(import.meta.dirname, '../..');
const ENTRY = `
import { defaultChain } from './parent-proxy/services/instance-credentials.ts';
const credentials = await (await defaultChain())();
console.log(credentials.accessKeyId);
`;

/** The metadata service of an instance with a role, by IMDSv2. */
const ROLE = '/latest/meta-data/iam/security-credentials/';
const ANSWERS = new Map([
  ['PUT /latest/api/token', 'a token of the session'],
  [`GET ${ROLE}`, 'strongroom-parent'],
  [
    `GET ${ROLE}strongroom-parent`,
    JSON.stringify({
      AccessKeyId: 'ASIATESTOFTHEROLE000',
      SecretAccessKey: 'TEST-secret',
      Token: 'TEST-token',
      Expiration: '2999-01-01T00:00:00Z',
    }),
  ],
]);
const NO_OTHERS = { AWS_CONFIG_FILE: devNull, AWS_SHARED_CREDENTIALS_FILE: devNull };

it.runIf(addonForTests())(
  'the chain of a bundle finds the role of the instance, as that of a checkout does',
  async () => {
    expect(await defaultChain()).toBeTypeOf('function');
    const { files } = await bundleProgram(ROOT, { entry: ENTRY, inPlaceOf: new Map() });
    const folder = mkdtempSync(join(tmpdir(), 'strongroom-credentials-'));
    for (const { name, data } of files) writeFileSync(join(folder, name), data);
    const metadata = createServer((request, response) => {
      response.end(ANSWERS.get(`${request.method} ${request.url}`) ?? '');
    });
    await once(metadata.listen(0, '127.0.0.1'), 'listening');
    const { port } = metadata.address() as AddressInfo;
    const said = await promisify(execFile)(join(ROOT, 'bin/pinned-node'), [join(folder, MAIN_FILE)], {
      env: { ...NO_OTHERS, AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://127.0.0.1:${port}` },
    });
    metadata.close();
    rmSync(folder, { recursive: true });
    expect(said.stdout).toBe('ASIATESTOFTHEROLE000\n');
  },
  120_000,
);
