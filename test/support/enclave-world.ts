// An enclave and everything around it on one machine: the program in a process of its own, an emulated NSM that the
// test holds, the real parent proxy in the test's process over Unix sockets, DynamoDB and KMS stand-ins behind its
// declared egress. All keys are TEST keys.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { CeremonyBlock } from '../../ceremony/definition.ts';
import { type PausingClock, pausingClock } from '../../parent-proxy/clock.ts';
import { CUSTODY_REGION, type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { createNsmEmulator } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki, type NsmPki } from '../../rehearsal/nsm/pki.ts';
import type { EgressEndpoint } from '../../signer/api/egress.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import type { Transport } from '../../signer/native/transport.ts';
import { type Parent, type ParentOptions, startParent } from './enclave-parent.ts';
import { type EnclaveProcess, type StartOptions, startProgram } from './enclave-process.ts';
import { serveNsm } from './nsm-socket.ts';
import { ownAddress } from './own-address.ts';
import { unixTransport } from './unix-transport.ts';

/** A port that the parent closed is refused, and is no other test's. */
const OWN = { listen_address: ownAddress(6), listen_port: 0 };
const LOOPBACK = { listen_address: '127.0.0.1', listen_port: 0 };

export interface EnclaveWorld {
  readonly custody: CustodyWorld;
  readonly pki: NsmPki;
  readonly ceremony: CeremonyBlock;
  /** Declared egress. */
  readonly endpoints: readonly EgressEndpoint[];
  readonly stateTable: string;
  readonly folder: string;
  /** The parent's side of the streams, for a parent that is not the proxy. */
  readonly streams: Transport;
  /** The enclave's configuration, with sections replaced. */
  yaml(sections?: Record<string, unknown>): string;
  startParent(yaml?: string, options?: ParentOptions): Promise<Parent>;
  startEnclave(options?: StartOptions): Promise<EnclaveProcess>;
  close(): Promise<void>;
}

/** @param clock of the NSM and of KMS; the system's unless given */
export async function startEnclaveWorld(clock: Pick<PausingClock, 'now'> = pausingClock): Promise<EnclaveWorld> {
  const pki = await createNsmPki();
  const custody = await startCustody({ kms: { attestationRoot: pki.rootFingerprint, clock } });
  const folder = mkdtempSync(join(tmpdir(), 'sr-'));
  const endpoints = declaredEndpoints();
  const ceremony = custody.createCeremony();
  const stateTable = await custody.createTable();
  await custody.dynamodb.createTable(keyTableDefinition(`${stateTable}-keys`));
  let nsm = await createNsmEmulator({ pki, clock });
  const device = await serveNsm(join(folder, 'nsm'), () => nsm.exchange);
  const children = new Set<EnclaveProcess>();

  const yaml = (sections: Record<string, unknown> = {}): string =>
    stringify({ ...configuration(stateTable, endpoints), ...sections }, { aliasDuplicateObjects: false });
  return {
    custody,
    pki,
    ceremony,
    endpoints,
    stateTable,
    folder,
    streams: unixTransport(folder, 'parent'),
    yaml,
    startParent(text = yaml(), options = {}) {
      const ports = {
        8001: portOf({ endpoint: options.dynamodb ?? custody.dynamodb.endpoint }),
        8002: portOf({ endpoint: options.kms ?? custody.kms.endpoint }),
        ...(options.database === undefined ? {} : { [options.database.vsockPort]: options.database.port }),
      };
      return startParent(text, unixTransport(folder, 'parent'), ports, options);
    },
    async startEnclave(options = {}) {
      nsm = options.nsm ?? (await createNsmEmulator({ pki, clock })); // its registers are as after power-on
      const started = startProgram(folder, endpoints, { ceremony, ...options, nsm });
      children.add(started);
      return started;
    },
    async close() {
      for (const child of children) await child.kill();
      await device.close();
      await custody.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function declaredEndpoints(): readonly EgressEndpoint[] {
  return ['dynamodb', 'kms'].map((service, index) => ({
    hostname: `${service}.${CUSTODY_REGION}.amazonaws.com`,
    loopback: ownAddress(index + 2),
    vsock_port: 8001 + index,
    port: 443,
  }));
}

function configuration(stateTable: string, endpoints: readonly EgressEndpoint[]): Record<string, unknown> {
  return {
    network: 'mainnet',
    signer_state: { backend: 'dynamodb', table: stateTable },
    key_sources: { dynamodb: { table: `${stateTable}-keys` } },
    anti_slashing: slashingSection(stateTable, { jump_at_boot: false }),
    chamber: { keys: { generate_keys: { enabled: true }, import: { enabled: true } } },
    tls: { mode: 'ratls' },
    server: { seccomp: 'best_effort' },
    // Tests of sealed credentials take it out again.
    tee: { platform: 'nitro', nitro: { egress: { endpoints }, unsafe_parent_writes_tables: true } },
    parent_proxy: {
      ingress: { tls: OWN, probes: LOOPBACK, metrics: LOOPBACK },
      metrics: LOOPBACK,
      limits: { graceful_shutdown_timeout_seconds: 0 },
    },
  };
}

/** Without a jump at boot the first start signs the messages of the tests, which are old. */
export function slashingSection(stateTable: string, members: object = {}): Record<string, unknown> {
  return { backend: 'dynamodb', table: `${stateTable}-slashing`, ...members };
}

function portOf({ endpoint }: { readonly endpoint: string }): number {
  return Number(new URL(endpoint).port);
}
