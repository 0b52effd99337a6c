// Writes the references that are generated from the source: `make docs`. A test compares each file with what its
// generator says, so a reference cannot fall behind the code.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeAll, OVERVIEW } from '../../bin/programs.ts';
import { ceremonyReference } from '../../ceremony/reference.ts';
import type { Description } from '../../common/command-line/command.ts';
import { authorizationReference, operatorReference } from '../../operator/reference.ts';
import { parentProxyReference } from '../../parent-proxy/reference.ts';
import { configurationReference } from '../../service/config/reference.ts';
import { apiReference } from '../../service/openapi/reference.ts';
import { web3SignerReference } from '../../service/web3signer/reference.ts';
import { permissionsReference, TEMPLATES } from '../../setup/reference.ts';
import { auditReference, errorReference } from '../../signer/api/reference/error-reference.ts';
import { metricsReference } from '../../signer/metrics/reference.ts';
import { dashboardPlan } from './dashboard-plan.ts';

export interface Reference {
  readonly path: string;
  readonly generate: () => string;
}

const everything = await describeAll();
const DESCRIPTIONS = `${JSON.stringify(everything, undefined, 1)}\n`;

function described(program: string): Description {
  return everything.commands?.[program] ?? OVERVIEW;
}

export const REFERENCES: readonly Reference[] = [
  { path: 'bin/descriptions.json', generate: () => DESCRIPTIONS },
  { path: 'docs/images/dashboard.svg', generate: dashboardPlan },
  { path: 'docs/reference/api.md', generate: apiReference },
  { path: 'docs/reference/audit.md', generate: auditReference },
  { path: 'docs/reference/authorization.md', generate: authorizationReference },
  { path: 'docs/reference/ceremony.md', generate: () => ceremonyReference(described('ceremony')) },
  { path: 'docs/reference/configuration.md', generate: configurationReference },
  { path: 'docs/reference/errors.md', generate: errorReference },
  { path: 'docs/reference/metrics.md', generate: metricsReference },
  { path: 'docs/reference/operator.md', generate: () => operatorReference(described('operator')) },
  { path: 'docs/reference/parent-proxy.md', generate: parentProxyReference },
  { path: 'docs/reference/permissions.md', generate: permissionsReference },
  { path: 'docs/reference/web3signer.md', generate: web3SignerReference },
  ...TEMPLATES.map(({ path, generate }) => ({ path: `deploy/terraform/${path}`, generate })),
];

if (import.meta.main) {
  for (const { path, generate } of REFERENCES) {
    writeFileSync(join(import.meta.dirname, '../..', path), generate());
  }
}
