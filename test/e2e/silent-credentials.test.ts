// AWS credentials from a neighbour that takes connections and never answers: what needs them ends in time, a start says
// so and ends, and a signer signs again when the neighbour does, without a restart.

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type DynamoDBServer, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { deploy } from '../support/deployment.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { attestation, call, signCall } from '../support/requests.ts';

const TABLE = 'silent_credentials';
/** In seconds: the SDK asks again when they are over. */
const LIFE = 2;

let dynamodb: DynamoDBServer;
let folder: string;
let signer: RunningSigner | undefined;
let isSilent = false;
const held = new Set<ServerResponse>();
const agent = createServer((_request, response) => {
  if (isSilent) return void held.add(response);
  const Expiration = new Date(Date.now() + LIFE * 1000).toISOString();
  response.end(JSON.stringify({ AccessKeyId: 'test', SecretAccessKey: 'test', Token: 'test', Expiration }));
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-silent-'));
  dynamodb = await startDynamoDB();
  await dynamodb.createTable(tableDefinition(TABLE));
  await new Promise<void>((resolve) => agent.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  await signer?.kill();
  signer = undefined;
});
afterAll(async () => {
  agent.closeAllConnections();
  agent.close();
  await dynamodb.close();
  rmSync(folder, { recursive: true, force: true });
});

const url = () => `http://127.0.0.1:${(agent.address() as AddressInfo).port}`;
const config = {
  anti_slashing: { backend: 'dynamodb', table: TABLE },
  server: { health_check: { poll_interval_seconds: 1 } },
};
const common = () => ({ AWS_REGION: 'eu-central-1', AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint });
const fromAgent = () => ({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url()}/v1/credentials` });

function program(): Record<string, string> {
  const path = join(folder, 'ask');
  writeFileSync(path, '#!/bin/sh\nexec sleep 60\n');
  chmodSync(path, 0o700);
  const file = join(folder, 'config');
  writeFileSync(file, `[default]\ncredential_process = ${path}\n`);
  return { AWS_CONFIG_FILE: file };
}

function identity(): Record<string, string> {
  const token = join(folder, 'token');
  writeFileSync(token, 'a web identity');
  return {
    AWS_WEB_IDENTITY_TOKEN_FILE: token,
    AWS_ROLE_ARN: 'arn:aws:iam::111122223333:role/signer',
    AWS_ENDPOINT_URL_STS: url(),
  };
}

/** Each source of the default chain for which another program answers. */
const SOURCES: Readonly<Record<string, () => Record<string, string>>> = {
  'the agent of ECS or EKS': fromAgent,
  'a program': program,
  'STS for a web identity': identity,
  'the metadata of the instance': () => ({
    AWS_EC2_METADATA_DISABLED: 'false',
    AWS_EC2_METADATA_SERVICE_ENDPOINT: url(),
  }),
};

it.each(Object.entries(SOURCES))('a start says that %s does not answer, and ends', async (_source, env) => {
  isSilent = true;
  const started = deploy(1).start({ config, env: { ...common(), ...env() } });
  await expect(started).rejects.toThrow(/exit 1: .*cannot start: slashing protection: .*(credential|timed? ?out)/is);
});

it('a silent agent ends requests by 503 and the health, and no restart is needed when it answers again', async () => {
  isSilent = false;
  const deployment = deploy(1);
  const key = deployment.keys[0]?.publicKey ?? '';
  signer = await deployment.start({ config, env: { ...common(), ...fromAgent() } });
  const { url: base } = signer;
  let target = 20;
  const vote = async () => {
    target += 1;
    const { status, json } = await signCall(base, key, attestation({ source: target - 1, target }));
    return json['reason'] ?? status;
  };
  const health = async () => (await call(`${base}/healthcheck`, { token: null })).status;
  const poll = { timeout: LONGEST_WAIT_MS, interval: 200 };
  expect(await vote()).toBe(200);
  isSilent = true;
  await expect.poll(vote, poll).toBe('slashing_unavailable');
  await expect.poll(health, poll).toBe(503);
  expect(await vote()).toBe('slashing_unavailable'); // not request_timeout: the request is over before
  expect(held.size).toBeGreaterThan(1); // it is asked again and again
  isSilent = false;
  await expect.poll(vote, poll).toBe(200);
  await expect.poll(health, poll).toBe(200);
});

it('so is a table that a command looks at', async () => {
  isSilent = true;
  const path = join(folder, 'strongroom.yaml');
  writeFileSync(path, `anti_slashing: { backend: dynamodb, table: ${TABLE} }\n`);
  const { code, stderr } = await runStrongroom(['slashing', 'status', '-c', path], {
    env: { ...common(), ...fromAgent() },
  });
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/credentials/i);
});
