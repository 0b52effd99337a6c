// Writes the references that are generated from the source: `make docs`. A test compares each file with what its
// generator says, so a reference cannot fall behind the code.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeAll, OVERVIEW } from '../../bin/programs.ts';
import type { Description } from '../../common/command-line/command.ts';
import { apiReference } from './api.ts';
import { auditReference } from './audit.ts';
import { authorizationReference } from './authorization.ts';
import { ceremonyReference } from './ceremony.ts';
import { configurationReference } from './configuration.ts';
import { dashboardPlan } from './dashboard-plan.ts';
import { errorReference } from './errors.ts';
import { metricsReference } from './metrics.ts';
import { operatorReference } from './operator.ts';
import { parentProxyReference } from './parent-proxy.ts';
import { permissionsReference } from './permissions.ts';
import { TEMPLATES } from './policy-templates.ts';
import { web3SignerReference } from './web3signer.ts';

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
