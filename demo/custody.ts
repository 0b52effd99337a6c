// What `make demo-custody` runs, to be read from top to bottom: a custody ceremony's whole life on local stand-ins for
// DynamoDB and KMS, with two replicas of the real program and the real operator commands. All keys are TEST keys.

import { setStage } from '../tools/rehearsal/stage.ts';
import { isKept } from './keep.ts';
import { keepFleet } from './kept-fleet.ts';
import { tellKeyEvidence } from './key-evidence.ts';

/** Replicas follow within their refresh interval of one second; after a seal they wait for their lease, and jump. */
const PATIENCE_MS = 45_000;
const PAUSE_MS = 100;

const stage = await setStage('');
const { say, heading, custody, table } = stage;
try {
  heading('Two replicas boot at once on a fresh state table: one initialises, both unseal');
  const replicas = await Promise.all([stage.startReplica(), stage.startReplica()]);
  const [first, second] = replicas;
  for (const replica of replicas) {
    const steps = replica.log.filter(({ module }) => module === 'chamber').map(({ msg }) => `  ${String(msg)}`);
    say(`${replica.url}\n${steps.join('\n')}`);
  }

  heading('The root token is in the table, encrypted to the ceremony participants; an age identity opens it');
  const row = await custody.row(table, 'ROOT_TOKEN_BOOTSTRAP');
  say(`${String(row?.['value']?.S).split('\n').slice(0, 2).join('\n')}\n…`);
  const rootToken = await custody.rootToken(table);
  say(`opened: ${rootToken.slice(0, 8)}… (${rootToken.length} characters, to be kept offline)`);

  const status = await stage.operator(first, rootToken, ['status']);
  say(`its ${status.split('\n').find((line) => line.startsWith('master key')) ?? 'master key is not in the status'}`);

  heading('A management token for daily work, a policy, and a client token');
  const created = await stage.operator(first, rootToken, ['auth', 'token', 'create', '--management', '--json']);
  const management = (JSON.parse(created) as { token: string }).token;
  const rules = JSON.stringify([
    { effect: 'allow', scopes: ['sign', 'public_keys'], keys: [stage.key.publicKey] },
    { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
  ]);
  say(
    await stage.operator(first, management, [
      'auth',
      'policy',
      'create',
      '--name',
      'validator-client',
      '--rules',
      rules,
    ]),
  );
  const client = await stage.operator(first, management, [
    ...['auth', 'token', 'create', '--policies', 'validator-client', '--ttl', '1d', '--json'],
  ]);
  const { token, accessor } = JSON.parse(client) as { token: string; accessor: string };
  say(`client token ${accessor}`);

  // A block of the present: later than what a replica raises its keys to when its start took longer than its lease.
  heading('The other replica knows the token within the refresh interval, and signs a block');
  const signed = await until(
    () => stage.proposal(second, token),
    ({ status }) => status === 200,
  );
  say(`${signed.status} ${signed.text.slice(0, 80)}…`);

  heading('Break glass: one command seals every replica');
  say(await stage.operator(first, management, ['seal', '--reason', 'demonstration', '--yes']));
  for (const replica of replicas) {
    const refused = await until(
      () => stage.proposal(replica, token),
      ({ text }) => text.includes('"sealed"'), // not only without an answer from the state table
    );
    say(`${replica.url}: ${refused.status} ${refused.text}`);
  }

  heading('The latch survives a restart: the signer starts sealed');
  await Promise.all(replicas.map((replica) => replica.stop()));
  const sealed = await stage.startReplica('listening');
  say(`${sealed.url}: ${(await stage.proposal(sealed, token)).text}`);
  await sealed.stop();

  heading('Recovery: delete the SEAL_OVERRIDE row, then restart every replica');
  await custody.deleteRow(table, 'SEAL_OVERRIDE');
  const recovered = await stage.startReplica();
  const again = await until(
    () => stage.proposal(recovered, token),
    ({ status }) => status === 200,
  );
  say(
    'The sealed replicas did not end in order. So the first one to come back waited until none of them could sign any ' +
      'more, and refuses whatever lies before the present. It signs a block of the present slot:',
  );
  say(`${again.status} ${again.text.slice(0, 80)}…`);
  say(await stage.operator(recovered, management, ['status']));

  heading('In enclaves the master key proves where it comes from: first boot, image upgrade and rotation');
  say(await tellKeyEvidence(custody));

  if (isKept()) {
    await recovered.stop();
    await keepFleet(stage, { management, client: token });
  } else {
    heading('Go on from here');
    say(
      'Keep this world running: make demo-custody KEEP=1\nTry your own ceremony:  bin/strongroom ceremony rehearse ceremony.yaml\nRead:                   docs/architecture.md, docs/reference/operator.md',
    );
  }
} finally {
  await stage.close();
}

/** The first answer that is as wanted. */
async function until<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  while (Date.now() < end) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  throw new Error('the replicas did not follow');
}
