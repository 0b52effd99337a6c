// The machine of a signer that runs as an ordinary service, for the pages that alerts lead to: its configuration with
// static tokens, keys in files, TLS, the unit and its journal. What a fault takes away or breaks is real: the store,
// the key files, the certificate, the process, the clock. All keys are TEST keys.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { startSigner } from '../../rehearsal/signer.ts';
import { testKey } from '../../rehearsal/test-key.ts';
import { makeCertificate } from '../support/certificates.ts';
import { attestation, block, rootOf } from '../support/messages.ts';
import { ownAddress } from '../support/own-address.ts';
import { ask, outcomeOf } from './asking.ts';
import type { Program } from './programs.ts';
import { chronycProgram, createUnit, journalctlProgram, systemctlProgram, type Unit } from './unit.ts';
import { type OpenWorld, openWorld } from './world.ts';

const MAINNET_GENESIS_MS = 1_606_824_023_000;
const EPOCH_MS = 384_000;
export const CLIENT_TOKEN = 'sr_client_TEST_TOKEN_of_the_validator_client_0001';
const OPERATOR_TOKEN = 'sr_client_TEST_TOKEN_of_the_operator_0000000001';
const CLOCK = join(import.meta.dirname, '../support/faulty-clock.ts');

export interface ServiceWorld extends OpenWorld {
  readonly keys: readonly string[];
  readonly address: string;
  readonly unit: Unit;
  /** The folder of the configuration, `strongroom.yaml`, with the key files and the TLS files. */
  readonly etc: string;
  readonly store: string;
  configure(change: (configuration: Record<string, unknown>) => void): void;
  vote(key: string, target: number, options?: { readonly head?: number; readonly token?: string }): Promise<string>;
  propose(key: string, slot: number, options?: { readonly body?: number; readonly token?: string }): Promise<string>;
  /** How far the clock of the machine is off from now on, and whether its kernel vouches for it (else it is silent). */
  setClock(offsetMs: number, kernel?: 'synchronised'): void;
  /** For the journal this time has gone by. */
  later(minutes: number): void;
}

export interface ServiceOptions {
  readonly programs?: Readonly<Record<string, Program>>;
  readonly sections?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
}

export async function startServiceRunbooks(options: ServiceOptions = {}): Promise<ServiceWorld> {
  const { programs = {}, sections = {}, env = {} } = options;
  const folder = mkdtempSync(join(tmpdir(), 'sr-'));
  const [etc, store] = [join(folder, 'etc'), join(folder, 'lib/strongroom')];
  for (const path of [join(etc, 'keys'), join(folder, 'run')]) mkdirSync(path, { recursive: true });
  mkdirSync(store, { recursive: true, mode: 0o700 });
  const address = ownAddress(20);
  const { cert, key } = makeCertificate(etc, 'signer', `IP:${address},IP:${ownAddress(21)}`);
  const keys = [0, 1, 2].map(testKey);
  for (const [index, { secret }] of keys.entries()) {
    writeFileSync(
      join(etc, `keys/key-${index}.yaml`),
      stringify({ type: 'file-raw', keyType: 'BLS', privateKey: secret }),
    );
  }
  const [clockFile, tokenFile] = [join(folder, 'clock'), join(folder, 'operator-token')];
  const setClock: ServiceWorld['setClock'] = (offsetMs, kernel = undefined) =>
    writeFileSync(clockFile, `${offsetMs} 0 ${kernel ?? ''}`);
  setClock(0);
  writeFileSync(tokenFile, OPERATOR_TOKEN, { mode: 0o600 });
  writeFileSync(
    join(etc, 'strongroom.env'),
    `VALIDATOR_CLIENT_TOKEN=${CLIENT_TOKEN}\nOPERATOR_TOKEN=${OPERATOR_TOKEN}\n`,
  );
  const clock = { NODE_OPTIONS: `--import=${CLOCK}`, FAULTY_CLOCK_FILE: clockFile };
  let minutes = 0;
  const unit = createUnit(address, (waitFor) =>
    startSigner({
      waitFor,
      folder: join(folder, 'run'),
      command: ['server', '-c', join(etc, 'strongroom.yaml')],
      env: { ...env, VALIDATOR_CLIENT_TOKEN: CLIENT_TOKEN, OPERATOR_TOKEN, ...clock },
    }),
  );
  const opened = await openWorld({
    folder,
    env: {
      ...clock,
      ...env,
      SVC_OPERATOR_SIGNER_URL: `https://${address}:9443`,
      SVC_OPERATOR_TLS_CA: cert,
      SVC_OPERATOR_TOKEN: `@${tokenFile}`,
    },
    values: { ETC: etc, STORE: store, SIGNER: address, SIGNERS: address, STATE_TABLE: '' },
    programs: {
      systemctl: systemctlProgram(unit),
      journalctl: journalctlProgram(unit, () => Date.now() + minutes * 60_000),
      chronyc: chronycProgram({ get: () => Number(readFileSync(clockFile, 'utf8').split(' ')[0]), set: setClock }),
      ...programs,
    },
  });
  let configuration = { ...firstConfiguration(address, { etc, store, cert, key }), ...sections };
  const configure: ServiceWorld['configure'] = (change) => {
    change(configuration);
    const text = stringify(configuration, { aliasDuplicateObjects: false });
    configuration = parse(text);
    writeFileSync(join(etc, 'strongroom.yaml'), text);
  };
  configure(() => undefined);
  const sign = async (key: string, body: object, token = CLIENT_TOKEN): Promise<string> =>
    outcomeOf(await ask(address, `/api/v1/eth2/sign/${key}`, token, body));
  return {
    ...opened,
    keys: keys.map(({ publicKey }) => publicKey),
    address,
    unit,
    etc,
    store,
    configure,
    vote: (key, target, { head = 1, token } = {}) =>
      sign(key, attestation({ source: target - 1, target, head: rootOf(head) }), token),
    propose: (key, slot, { body = 1, token } = {}) => sign(key, block({ slot, body: rootOf(body) }), token),
    setClock,
    later(more) {
      minutes += more;
    },
    trouble: () => unit.journal.slice(-20).join('\n'),
    async close() {
      await unit.stop();
      await opened.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function presentEpoch(): number {
  return Math.floor((Date.now() - MAINNET_GENESIS_MS) / EPOCH_MS);
}

interface Files {
  readonly etc: string;
  readonly store: string;
  readonly cert: string;
  readonly key: string;
}

function firstConfiguration(address: string, { etc, store, cert, key }: Files): Record<string, unknown> {
  const at = (listen_port: number) => ({ listen_address: address, listen_port });
  return {
    network: 'mainnet',
    logging: { format: 'json' },
    server: at(9000),
    metrics: at(3000),
    tls: { mode: 'file', ...at(9443), file: { cert_path: cert, key_path: key } },
    key_sources: { filesystem: { paths: [join(etc, 'keys')] } },
    anti_slashing: { backend: 'sqlite', path: join(store, 'slashing_protection.sqlite') },
    static_auth: {
      policies: [
        { name: 'validator-client', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] },
        { name: 'operator', rules: [{ effect: 'allow' }, { effect: 'deny', scopes: ['sign'] }] },
      ],
      tokens: [
        { name: 'validator-client', secret: 'env:VALIDATOR_CLIENT_TOKEN', policies: ['validator-client'] },
        { name: 'operator', secret: 'env:OPERATOR_TOKEN', policies: ['operator'] },
      ],
    },
  };
}
