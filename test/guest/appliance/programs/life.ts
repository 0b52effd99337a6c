// The life of an appliance as its users see it, in their order: the first boot, an auditor's verification, the
// participant's root token, a policy and a token, a key, signing through the tunnel, break glass, recovery, an image
// upgrade, a rotation. All of it goes through the parent proxy and RA-TLS.

import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runWithRoot } from '../../../operator/run-operator.ts';
import { MAINNET_ROOT } from '../../../support/messages.ts';
import { latestEpoch } from '../../../support/present.ts';
import { CUSTODY_KEYS, GUEST, type GuestSettings, type LaterImage } from '../settings.ts';
import { hasEnded, type RunningEnclave, run, shown, start } from './processes.ts';
import type { StandIns } from './stand-ins.ts';
import { type Chapter, deleteLatch, demand, nsmRoot, operator, rootToken, type Step, until } from './steps.ts';
import { propose, type VoteAnswer, vote } from './votes.ts';

export interface LifeParts {
  readonly settings: GuestSettings;
  readonly standIns: StandIns;
  readonly heartbeats: () => number;
  bootEnclave(): Promise<RunningEnclave>;
  installImage(name: LaterImage): void;
}

const URL_OF_THE_ENCLAVE = 'https://127.0.0.1:9443';
const TUNNEL = 'http://127.0.0.1:18550';
const OTHER_PCR = 'ab'.repeat(48);
const EXIT = { notExpected: 6, gaps: 12 } as const;

interface Found {
  enclave?: RunningEnclave;
  root?: string;
  management?: string;
  client?: string;
  auditor?: string;
  publicKey?: string | undefined;
  /** Target of the vote that was signed. */
  epoch?: number;
  tunnel?: ChildProcess;
}

export function lifeOfAnAppliance(parts: LifeParts): readonly Chapter[] {
  const found: Found = {};
  return [
    { title: 'The first boot: custody is set up', steps: firstBoot(parts, found) },
    { title: 'An auditor verifies what runs', steps: verification(parts) },
    { title: 'The participant gives out access', steps: access(parts, found) },
    { title: 'A validator client signs', steps: signing(parts, found) },
    { title: 'Break glass, and recovery', steps: breakGlass(parts, found) },
    { title: 'An image upgrade, and a rotation of the custody keys', steps: upgradeAndRotation(parts, found) },
  ];
}

function firstBoot({ bootEnclave, heartbeats, standIns }: LifeParts, found: Found): readonly Step[] {
  return [
    {
      name: 'the enclave boots, gives its heartbeat and answers its probe through the parent proxy',
      async run() {
        found.enclave = await bootEnclave();
        await until(healthy(found.enclave), (status) => status === 200);
        demand(heartbeats() === 1, `${heartbeats()} heartbeats`);
      },
    },
    {
      name: 'custody was initialised with attested calls of KMS over the declared egress, and nothing came back in the clear',
      async run() {
        const decrypts = standIns.kms.calls.filter(({ operation }) => operation === 'Decrypt');
        demand(decrypts.length >= 2, `${decrypts.length} calls of Decrypt`);
        demand(
          decrypts.every(({ document }) => document !== undefined),
          'a call of Decrypt without an attestation document',
        );
        const asked = new Set(standIns.kms.calls.map(({ arn }) => arn));
        demand(
          CUSTODY_KEYS.every((arn) => asked.has(arn)),
          `custody keys asked: ${[...asked].join(', ')}`,
        );
      },
    },
    {
      name: 'the plain port answers probes and nothing else',
      async run() {
        const other = await fetch('http://127.0.0.1:9001/api/v1/eth2/publicKeys');
        demand(other.status === 404, `status ${other.status}`);
      },
    },
    {
      name: 'metrics come through the parent proxy',
      async run() {
        const text = await (await fetch('http://127.0.0.1:3000/metrics')).text();
        demand(/^svc_chamber_unsealed(\{.*\})? 1$/m.test(text), 'svc_chamber_unsealed is not 1');
      },
    },
  ];
}

function verification({ settings }: LifeParts): readonly Step[] {
  return [
    {
      name: 'an auditor verifies the running enclave against pcrs.json',
      async run() {
        const { code, stdout, stderr } = await run('operator', [
          'verify',
          URL_OF_THE_ENCLAVE,
          '--pcrs',
          GUEST.measurements,
        ]);
        demand(code === 0, `exit code ${code}: ${stderr}${stdout}`);
        for (const line of stdout.trimEnd().split('\n')) process.stdout.write(`report: ${line}\n`);
      },
    },
    ...['0', '16', '17'].map((index) => ({
      name: `another PCR${index} is authentic and not expected: exit code 6`,
      async run() {
        const right = ['0', '16']
          .filter((other) => other !== index)
          .flatMap((other) => ['--pcr', `${other}=${settings.registers[other]}`]);
        const args = ['verify', URL_OF_THE_ENCLAVE, ...right, '--pcr', `${index}=${OTHER_PCR}`];
        const { code, stderr } = await runWithRoot(args, { rootFingerprint: nsmRoot() });
        demand(code === EXIT.notExpected, `exit code ${code}: ${stderr}`);
      },
    })),
    {
      name: 'an operator command that expects another image sends nothing',
      async run() {
        await operator(['status'], { token: 'sr_mgmt_TEST', pcr: `0=${OTHER_PCR}`, expect: EXIT.notExpected });
      },
    },
  ];
}

function access({ standIns, settings }: LifeParts, found: Found): readonly Step[] {
  return [
    {
      name: 'a participant opens the root token',
      async run() {
        found.root = await rootToken(standIns.dynamodb, settings.identity);
      },
    },
    {
      name: 'a management token, a policy and a client token',
      async run() {
        const create = ['auth', 'token', 'create', '--json'];
        found.management = tokenIn(await operator([...create, '--management'], { token: held(found.root) }));
        const rules = [
          { effect: 'allow', scopes: ['sign', 'public_keys', 'chamber_keys_generate'] },
          { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
        ];
        const policy = ['auth', 'policy', 'create', '--name', 'validator-client', '--rules', JSON.stringify(rules)];
        await operator(policy, { token: found.management });
        found.client = tokenIn(
          await operator([...create, '--policies', 'validator-client'], { token: found.management }),
        );
      },
    },
    {
      name: 'a key is generated in the enclave',
      async run() {
        const generate = ['keys', 'generate', '--count', '1', '--json'];
        const generated = await operator(generate, { token: held(found.client) });
        found.publicKey = (JSON.parse(generated) as { keys: { pubkey: string }[] }).keys[0]?.pubkey;
      },
    },
    {
      name: 'the status shows the platform and what is measured',
      async run() {
        const status = await operator(['status', '--json'], { token: held(found.management) });
        const { tee } = JSON.parse(status) as { tee: { platform: string; measurements: Record<string, string> } };
        demand(tee.platform === 'nitro', `platform ${tee.platform}`);
        demand(JSON.stringify(tee.measurements).includes(settings.registers['16'] ?? '-'), 'PCR16 is not shown');
        await tellOrigin('first', found);
      },
    },
  ];
}

function signing({ settings }: LifeParts, found: Found): readonly Step[] {
  const sign = (epoch: number, head?: string): Promise<VoteAnswer> => voteThroughTunnel(found, epoch, head);
  return [
    {
      name: 'operator tunnel verifies the enclave and signs for a validator client that has no token',
      async run() {
        found.tunnel = startTunnel(held(found.client));
        const signed = await presentVote(found);
        const { epoch, publicKey } = found;
        process.stdout.write(`signed: ${JSON.stringify({ epoch, publicKey, ...signed })}\n`);
      },
    },
    {
      name: 'the same vote again is signed again, another one for its target is refused with 412',
      async run() {
        const again = async (): Promise<VoteAnswer> => {
          const answer = await sign(held(found.epoch));
          if (answer.status === 412) await presentVote(found); // it has jumped in between
          return answer;
        };
        await until(again, ({ status }) => status === 200);
        const other = await sign(held(found.epoch), `0x${'99'.repeat(32)}`);
        demand(other.status === 412, `status ${other.status}: ${other.text}`);
      },
    },
    {
      name: 'an auditor fetches the log of receipts, attested by this image, and finds the vote and the refusal in it',
      async run() {
        const rules = JSON.stringify([{ effect: 'allow', scopes: ['receipts'] }]);
        const management = { token: held(found.management) };
        await operator(['auth', 'policy', 'create', '--name', 'auditor', '--rules', rules], management);
        const create = ['auth', 'token', 'create', '--json', '--policies', 'auditor'];
        found.auditor = tokenIn(await operator(create, management));
        const { measurements } = await until(
          () => auditedVotes(found),
          ({ notInLog, refused }) => notInLog === 0 && refused > 0,
        );
        for (const index of ['0', '1', '2', '16', '17'])
          demand(measurements[`PCR${index}`] === settings.registers[index], `PCR${index} is another one`);
      },
    },
  ];
}

interface AuditedVotes {
  readonly notInLog: number;
  readonly refused: number;
  readonly measurements: Readonly<Record<string, string>>;
}

/** A signer that runs has a log without an end, which is a gap; that it is not attested would be broken. */
async function auditedVotes({ auditor, epoch, publicKey }: Found): Promise<AuditedVotes> {
  const [folder, list] = [join(tmpdir(), 'receipts'), join(tmpdir(), 'signed.json')];
  const vote = { source_epoch: String(held(epoch) - 1), target_epoch: String(epoch) };
  const metadata = { interchange_format_version: '5', genesis_validators_root: MAINNET_ROOT };
  const data = [{ pubkey: publicKey, signed_blocks: [], signed_attestations: [vote] }];
  writeFileSync(list, JSON.stringify({ metadata, data }));
  const call = { token: held(auditor), expect: EXIT.gaps };
  await operator(['receipts', 'fetch', folder], call);
  const none = '{"boots":[],"list":{"not_in_log":1}}';
  const answer = await operator(['receipts', 'verify', folder, '--signed', list, '--json'], call).catch(() => none);
  const { boots, list: listed } = JSON.parse(answer) as {
    boots: { refused: number; measurements: Record<string, string> | null }[];
    list: { not_in_log: number };
  };
  const [boot] = boots;
  return { notInLog: listed.not_in_log, refused: boot?.refused ?? 0, measurements: boot?.measurements ?? {} };
}

function breakGlass({ bootEnclave, standIns, heartbeats }: LifeParts, found: Found): readonly Step[] {
  const sign = (epoch: number, head?: string): Promise<VoteAnswer> => voteThroughTunnel(found, epoch, head);
  return [
    {
      name: 'break glass seals: nothing is signed any more',
      async run() {
        await operator(['seal', '--reason', 'test', '--yes'], { token: held(found.management) });
        const { status, text } = await sign(latestEpoch());
        demand(isSealed({ status, text }), `status ${status}: ${text}`);
      },
    },
    {
      name: 'after a restart it is still sealed',
      async run() {
        await found.enclave?.terminate();
        found.enclave = await bootEnclave();
        await until(healthy(found.enclave), (status) => status === 503);
        // The probe says 503 while keys are loaded, too, and the tunnel while it connects: the signer itself has to say
        // why.
        await until(() => sign(latestEpoch()), isSealed);
        demand(heartbeats() === 2, `${heartbeats()} heartbeats`);
      },
    },
    {
      name: 'with the latch deleted, the next boot unseals from what the first one wrote',
      async run() {
        await deleteLatch(standIns.dynamodb);
        await found.enclave?.terminate();
        found.enclave = await bootEnclave();
        await until(healthy(found.enclave), (status) => status === 200);
      },
    },
    {
      name: 'another vote for the target of the first enclave is refused, by its record and by the jump',
      async run() {
        const { status, text } = await until(
          () => sign(held(found.epoch), `0x${'99'.repeat(32)}`),
          (answer) => answer.status === 200 || (answer.status >= 400 && answer.status !== 502 && answer.status !== 503),
        );
        demand(status === 412, `status ${status}: ${text}`);
      },
    },
    {
      // It has jumped to the present: the enclave before it did not end in order.
      name: 'it signs a block of the present, through the tunnel that was there before it',
      async run() {
        await until(
          () => propose(TUNNEL, held(found.publicKey)),
          ({ status }) => status === 200,
        );
        found.tunnel?.kill('SIGTERM');
      },
    },
  ];
}

function upgradeAndRotation({ bootEnclave, installImage }: LifeParts, found: Found): readonly Step[] {
  const next = async (name: LaterImage): Promise<void> => {
    await found.enclave?.terminate();
    installImage(name);
    found.enclave = await bootEnclave();
    await until(healthy(found.enclave), (status) => status === 200);
    await tellOrigin(name, found);
  };
  return [
    {
      name: 'an upgraded image opens the master key of the first one, whose evidence it verifies',
      run: () => next('upgraded'),
    },
    {
      name: 'an image with the next ceremony wraps the master key for new custody keys',
      run: () => next('rotated'),
    },
    {
      name: 'no token was ever on a console or in a log',
      run: async () => {
        for (const token of [found.root, found.management, found.client, found.auditor])
          demand(!shown(held(token)), 'a token was shown');
      },
    },
  ];
}

/** Onto the console, in lines that a serial port does not cut: outside, verify_key.py judges it (evidence.ts). */
async function tellOrigin(name: string, { management }: Found): Promise<void> {
  const status = await operator(['status', '--json'], { token: held(management) });
  const text = Buffer.from(JSON.stringify(JSON.parse(status))).toString('base64');
  for (const part of text.match(/.{1,512}/g) ?? []) process.stdout.write(`evidence: ${name} ${part}\n`);
}

/** The signer's own word for it, which no refusal of the tunnel has. */
function isSealed({ status, text }: VoteAnswer): boolean {
  return status === 503 && text.includes('"reason":"sealed"');
}

function startTunnel(token: string): ChildProcess {
  const args = ['tunnel', '--listen', new URL(TUNNEL).host, ...connection()];
  return start('operator', args, { env: { SVC_OPERATOR_TOKEN: token } });
}

async function voteThroughTunnel({ publicKey, tunnel }: Found, epoch: number, head?: string): Promise<VoteAnswer> {
  demand(!hasEnded(held(tunnel)), 'the tunnel has ended');
  return vote(TUNNEL, held(publicKey), epoch, head).catch((error: Error) => ({ status: 0, text: error.message }));
}

/** On a slow machine the signer waits and jumps: then it signs what comes after, an epoch later. */
async function presentVote(found: Found): Promise<VoteAnswer> {
  const ask = (): Promise<VoteAnswer> => {
    found.epoch = latestEpoch();
    return voteThroughTunnel(found, found.epoch);
  };
  return await until(ask, ({ status }) => status === 200, { attempts: 1800 });
}

function connection(): readonly string[] {
  return ['--pcrs', GUEST.measurements];
}

/** The status of the readiness probe; 0 while nobody answers. */
function healthy(enclave: RunningEnclave): () => Promise<number> {
  return async () => {
    demand(!enclave.hasEnded(), 'the enclave has ended');
    try {
      const response = await fetch('http://127.0.0.1:9001/healthcheck', { signal: AbortSignal.timeout(5000) });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return 0;
    }
  };
}

function tokenIn(json: string): string {
  return (JSON.parse(json) as { token: string }).token;
}

function held<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('an earlier step left nothing');
  return value;
}
