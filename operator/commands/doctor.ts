// `strongroom operator doctor` (docs/guides/doctor.md). It goes on as far as the checks before let it, and ends with
// the exit code of the first one that failed.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { createClient } from '../client.ts';
import { localCommand } from '../command.ts';
import { AUTH_TOKEN, COMMON_FLAGS } from '../common-flags.ts';
import { type DoctorFinding, findingsJson, renderFindings, skipped, verdictOf } from '../doctor/finding.ts';
import { checkSettings, checkToken } from '../doctor/settings-checks.ts';
import {
  checkClock,
  checkConnection,
  checkHealth,
  checkName,
  checkOwnToken,
  checkScopes,
  checkStatus,
  checkUpcheck,
  checkVersions,
} from '../doctor/signer-checks.ts';
import { CommandFailure } from '../exit.ts';
import { createOutput } from '../output.ts';
import { type SettingSteps, settingSteps, settingsOf } from '../settings.ts';

export const doctor = localCommand(
  {
    summary: 'Find out why commands do not work from here, and what to do',
    flags: { ...COMMON_FLAGS, ...AUTH_TOKEN },
    notes: [
      'It sends GETs only: the probes, the holder of the token, its status and the list of public keys. A token that ' +
        'may not do one of these leaves a refusal in the audit log of the signer.',
    ],
    examples: ['doctor --profile mainnet', 'doctor --signer-url https://signer-1.example:9443 --json'],
  },

  async ({ values, terminal, provider }) => {
    const findings: DoctorFinding[] = [];
    const steps = settingSteps(values, terminal.env, provider);
    await examineAll(steps, terminal, (...some) => findings.push(...some));
    createOutput(steps.output === 'json' ? 'json' : 'table', terminal).answer(
      { value: findings, text: findingsJson(findings) },
      renderFindings,
    );
    if (verdictOf(findings) !== 'fail') return;
    const failed = findings.filter(({ status }) => status === 'fail');
    const names = failed.map(({ check }) => check).join(', ');
    throw new CommandFailure(failed[0]?.exitCode ?? EXIT.failed, `failed: ${names}`, failed[0]?.todo ?? undefined);
  },
);

async function examineAll(
  steps: SettingSteps,
  terminal: Terminal,
  found: (...findings: readonly DoctorFinding[]) => void,
): Promise<void> {
  const asSet = checkSettings(steps, terminal.env);
  found(...asSet);
  if (steps.profile instanceof CommandFailure || steps.token instanceof CommandFailure) return;
  const source = await checkToken(steps.token, terminal);
  found(source.finding);
  if (verdictOf(asSet) === 'fail') return;
  const way = settingsOf(steps);
  const name = await checkName(way);
  found(name);
  if (name.status === 'fail') return;
  const connection = await checkConnection(way);
  found(connection);
  if (connection.status === 'fail') return;
  const client = createClient({ ...way, token: source.token });
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
