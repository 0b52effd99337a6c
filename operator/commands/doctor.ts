// `strongroom operator doctor`: why a command does not work from here, one line a check, in the order in which a
// command goes: profile, settings, token, name, connection, probes, clock, what the token may do, status, versions. It
// goes on as far as the checks before let it, and ends with the exit code of the first one that failed.

import { EXIT } from '../../command-line/exit-codes.ts';
import { createClient } from '../client.ts';
import type { LocalCall } from '../command.ts';
import type { doctor } from '../descriptions/replicas.ts';
import { type DoctorFinding, findingsJson, renderFindings, skipped, verdictOf } from '../doctor/finding.ts';
import { type Asked, checkName, checkProfile, checkSettings, checkTokenSource } from '../doctor/settings-checks.ts';
import {
  checkClock,
  checkConnection,
  checkHealth,
  checkOwnToken,
  checkScopes,
  checkStatus,
  checkUpcheck,
  checkVersions,
} from '../doctor/signer-checks.ts';
import { CommandFailure } from '../exit.ts';
import { createOutput } from '../output.ts';

export async function findTrouble({ values, terminal, provider }: LocalCall<typeof doctor.flags>): Promise<void> {
  const findings: DoctorFinding[] = [];
  await examineAll({ flags: values, terminal, provider }, (finding) => findings.push(finding));
  const { SVC_OPERATOR_JSON: json, SVC_OPERATOR_OUTPUT: former } = terminal.env;
  const format = values.json || json === 'true' || (json === undefined && former === 'json') ? 'json' : 'table';
  createOutput(format, terminal).answer({ value: findings, text: findingsJson(findings) }, renderFindings);
  if (verdictOf(findings) !== 'fail') return;
  const failed = findings.filter(({ status }) => status === 'fail');
  const names = failed.map(({ check }) => check).join(', ');
  throw new CommandFailure(failed[0]?.exitCode ?? EXIT.failed, `failed: ${names}`, failed[0]?.todo ?? undefined);
}

async function examineAll(asked: Asked, found: (finding: DoctorFinding) => void): Promise<void> {
  const profile = checkProfile(asked);
  found(profile);
  if (profile.status === 'fail') return;
  const { finding, settings } = checkSettings(asked);
  found(finding);
  if (settings === undefined) return;
  const source = await checkTokenSource(settings, asked.terminal);
  found(source.finding);
  const { peer, timeoutSeconds } = settings;
  const name = await checkName(peer, timeoutSeconds);
  found(name);
  if (name.status === 'fail') return;
  const connection = await checkConnection(peer, timeoutSeconds);
  found(connection);
  if (connection.status === 'fail') return;
  const client = createClient({ peer, token: source.token, timeoutSeconds });
  const up = await checkUpcheck(client);
  found(up.finding);
  if (up.finding.status === 'fail') return;
  found(checkClock(up));
  const health = await checkHealth(client);
  found(health);
  if (source.token === undefined) {
    found(skipped('scopes', 'no token is given'));
    found(checkVersions(undefined));
    return;
  }
  if (health.exitCode === EXIT.sealed) {
    found(skipped('scopes', 'a sealed signer knows no token'));
    found(checkVersions(undefined));
    return;
  }
  found(await checkOwnToken(client));
  const scopes = await checkScopes(client);
  found(scopes.finding);
  found(checkStatus(scopes.status));
  found(checkVersions(scopes.status));
}
