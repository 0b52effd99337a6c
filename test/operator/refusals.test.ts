// What the operator is told to do when a signer says no, and when nobody answers.

import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { OPTIONS } from '../../signer/config/options.ts';
import { folder, start } from './connection-set-up.ts';
import { answerRefusal } from './fixture-signer.ts';
import { runWithRoot } from './run-operator.ts';

const KEY = `0x${'a1'.repeat(48)}`;

async function said(url: string, command: string): Promise<string> {
  const args = [
    ...command.replace('FOLDER', folder).split(' '),
    '--signer-url',
    url,
    '--allow-plaintext-signer',
    '--token',
    'sr_mgmt_test',
  ];
  return (await runWithRoot(args, { rootFingerprint: '' })).stderr;
}

it.each([
  ['auth policy list', 'signer_state.backend'],
  ['auth token create --management', 'signer_state.backend'],
  ['seal --yes', 'signer_state.backend'],
  ['keys generate --count 1', 'chamber.keys.generate_keys.enabled'],
  [
    'keys generate --count 1 --withdrawal-address 0x5252525252525252525252525252525252525252',
    'chamber.keys.generate.enabled',
  ],
  [`keys deposit-data --pubkeys ${KEY} --credentials 0x00${'11'.repeat(31)}`, 'chamber.keys.deposit_data.enabled'],
  [`keys activate --pubkeys ${KEY}`, 'chamber.keys.lifecycle.enabled'],
  [`keys deactivate --pubkeys ${KEY} --yes`, 'chamber.keys.lifecycle.enabled'],
  [`keys delete --pubkeys ${KEY} --yes --output FOLDER/deleted.json`, 'chamber.keys.lifecycle.enabled'],
])('what the signer leaves out is named by the option that brings it: %s', async (command, option) => {
  const signer = await start((_, response) => answerRefusal(response, 'not_found'));
  const stderr = await said(signer.url, command);
  expect(stderr).toMatch(/refused: not_found: /);
  expect(stderr).toContain(`it needs ${option} in the configuration of the signer`);
  expect(Object.keys(OPTIONS)).toContain(option);
});

it.each([
  ['status', 'the scope chamber_status is needed', 'give its policy this scope: docs/reference/authorization.md'],
  ['slashing export', undefined, "give its policy the command's scope, for every key that is asked for: docs/"],
  ['auth token list', 'a management token is needed', 'policies and tokens need a management token'],
])('who is denied learns what to ask for: %s', async (command, hint, advice) => {
  const signer = await start((_, response) => answerRefusal(response, 'denied', hint));
  expect(await said(signer.url, command)).toContain(`\n  ${advice}`);
});

it('a token for a policy that is not there is told where to see those that are', async () => {
  let hint = 'policies: there is no policy nope';
  const signer = await start((_, response) => answerRefusal(response, 'invalid_token_request', hint));
  const command = 'auth token create --policies nope';
  const advice = 'see them: strongroom operator auth policy list';
  expect(await said(signer.url, command)).toContain(`\n  ${advice}`);
  hint = 'bound_cidrs: too wide';
  expect(await said(signer.url, command)).not.toContain(advice);
});

it('a port that nobody listens on is a question of TLS for an https: URL alone', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  expect(await said(`http://127.0.0.1:${port}`, 'status')).toMatch(/refused\n {2}is the signer running\?\n/);
  const advice = /refused\n {2}is the signer running, and its TLS listener on\?\n/;
  expect(await said(`https://127.0.0.1:${port}`, 'status')).toMatch(advice);
});
