// Writes the references that are generated from the source: `make docs`. A test compares each file with what its
// generator says, so a reference cannot fall behind the code.

import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeAll } from '../bin/programs.ts';
import { ceremonyReference } from '../ceremony/reference.ts';
import { auditReference } from '../enclave/api/reference/audit-reference.ts';
import { errorReference } from '../enclave/api/reference/error-reference.ts';
import { configurationReference } from '../enclave/config/reference.ts';
import { metricsReference } from '../enclave/metrics/reference.ts';
import { authorizationReference } from '../operator/authorization-reference.ts';
import { operatorReference } from '../operator/reference.ts';
import { parentProxyReference } from '../parent-proxy/reference.ts';
import { permissionsReference } from '../setup/reference.ts';
import { TEMPLATES } from '../setup/terraform.ts';
import { web3SignerReference } from '../web3signer/reference.ts';

export interface Reference {
  /** Beside this file. */
  readonly path: string;
  readonly generate: () => string;
}

const DESCRIPTIONS = `${JSON.stringify(await describeAll(), undefined, 1)}\n`;

export const REFERENCES: readonly Reference[] = [
  // What help and completion read.
  { path: '../bin/descriptions.json', generate: () => DESCRIPTIONS },
  { path: 'reference/audit.md', generate: auditReference },
  { path: 'reference/authorization.md', generate: authorizationReference },
  { path: 'reference/ceremony.md', generate: ceremonyReference },
  { path: 'reference/configuration.md', generate: configurationReference },
  { path: 'reference/errors.md', generate: errorReference },
  { path: 'reference/metrics.md', generate: metricsReference },
  { path: 'reference/operator.md', generate: operatorReference },
  { path: 'reference/parent-proxy.md', generate: parentProxyReference },
  { path: 'reference/permissions.md', generate: permissionsReference },
  { path: 'reference/web3signer.md', generate: web3SignerReference },
  // The policies of deploy/terraform.
  ...TEMPLATES.map(({ path, generate }) => ({ path: `../deploy/terraform/${path}`, generate })),
];

if (import.meta.main) {
  for (const { path, generate } of REFERENCES) {
    writeFileSync(fileURLToPath(new URL(path, import.meta.url)), generate());
  }
}
