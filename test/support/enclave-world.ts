// An enclave and everything around it on one machine: the program in a process of its own, an emulated NSM that the
// test holds, the real parent proxy in the test's process over Unix sockets, DynamoDB and KMS stand-ins behind its
// declared egress. All keys are TEST keys.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { CeremonyBlock } from '../../ceremony/definition.ts';
import type { EgressEndpoint } from '../../enclave/api/egress.ts';
import type { CompiledImage } from '../../enclave/compiled.ts';
import { keyTableDefinition } from '../../enclave/keys/table/rows.ts';
import type { Transport } from '../../enclave/native/transport.ts';
import { createPlainLogger } from '../../observe/plain-logger.ts';
import { type PausingClock, systemClock } from '../../parent-proxy/clock.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { createMetrics } from '../../parent-proxy/metrics.ts';
import type { Output } from '../../parent-proxy/output.ts';
import type { CredentialsProvider } from '../../parent-proxy/services/instance-credentials.ts';
import { type RunningProxy, startParentProxy } from '../../parent-proxy/start.ts';
import { tracked } from '../../rehearsal/children.ts';
import { CUSTODY_REGION, type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { createNsmEmulator, type NsmEmulator } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki, type NsmPki } from '../../rehearsal/nsm/pki.ts';
import { cleanEnvironment } from '../../rehearsal/signer.ts';
import { serveNsm } from './nsm-socket.ts';
import { unixTransport } from './unix-transport.ts';

/** What the child process reads. */
export interface ProgramImage {
  readonly image: CompiledImage;
  /** Where every alias listens: the declared 443 is not everybody's to have. */
  readonly aliasPort: number;
  readonly patienceMs: number;
}

const PROGRAM = join(import.meta.dirname, 'enclave-program.ts');
const PINNED_NODE = join(import.meta.dirname, '../../bin/pinned-node');
const ALIAS_PORT = 24_443;
/** A start that fails is to fail soon; one that waits for its parent has the time of a loaded machine. */
const PATIENCE_MS = 20_000;
/** Only so that a line that does not come is named. */
const LOG_WAIT_MS = 800_000;
const LOOPBACK = { listen_address: '127.0.0.1', listen_port: 0 };

export interface EnclaveProcess {
  /** The NSM that this start has: its registers, as a document would show them. */
  readonly nsm: NsmEmulator;
  /** What the console shows. */
  console(): string;
  readonly exited: Promise<number | null>;
  stop(): Promise<number | null>;
  kill(): Promise<void>;
}

export interface Parent extends RunningProxy {
  /** Lines of the parent's output, parsed: its own, and the enclave's. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** The first line of the enclave with this message, once there is one. */
  said(message: string): Promise<Readonly<Record<string, unknown>>>;
  readonly tlsUrl: string;
  readonly probesUrl: string;
  readonly metricsUrl: string;
  close(): Promise<void>;
}

export interface ParentOptions {
  /** What it hands over, when that is not the configuration it runs on. */
  readonly handsOver?: Buffer;
  readonly credentials?: CredentialsProvider;
  /** Base URL: what its DynamoDB endpoint leads to, when that is not the world's table server. */
  readonly dynamodb?: string;
  /** The same of its KMS endpoint. */
  readonly kms?: string;
  /** What happens on a vsock port of the parent in place of what should: `absent` is nobody there. */
  readonly instead?: Readonly<Record<number, 'absent' | ((socket: Socket) => void)>>;
}

export interface EnclaveWorld {
  readonly custody: CustodyWorld;
  readonly pki: NsmPki;
  readonly ceremony: CeremonyBlock;
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

export interface StartOptions {
  /** Into the image, instead of having it fetched. */
  readonly baked?: string;
  readonly nsm?: NsmEmulator;
  readonly patienceMs?: number;
}

/** @param clock of the NSM and of KMS; the system's unless given */
export async function startEnclaveWorld(clock: Pick<PausingClock, 'now'> = systemClock): Promise<EnclaveWorld> {
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
    stateTable,
    folder,
    streams: unixTransport(folder, 'parent'),
    yaml,
    startParent(text = yaml(), options = {}) {
      const ports = {
        8001: portOf({ endpoint: options.dynamodb ?? custody.dynamodb.endpoint }),
        8002: portOf({ endpoint: options.kms ?? custody.kms.endpoint }),
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

/** At loopback addresses of this process's own: others run the same tests on this machine. */
function declaredEndpoints(): readonly EgressEndpoint[] {
  const network = `${64 + ((process.pid >> 8) & 0x7f)}.${process.pid & 0xff}`;
  return ['dynamodb', 'kms'].map((service, index) => ({
    hostname: `${service}.${CUSTODY_REGION}.amazonaws.com`,
    loopback: `127.${network}.${index + 2}`,
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
    tee: { platform: 'nitro', nitro: { egress: { endpoints } } },
    parent_proxy: {
      ingress: { tls: LOOPBACK, probes: LOOPBACK, metrics: LOOPBACK },
      metrics: LOOPBACK,
      limits: { graceful_shutdown_timeout_seconds: 0 },
    },
  };
}

/** Without a jump at boot the messages of the tests, which are old, are signed. */
export function slashingSection(stateTable: string, members: object = {}): Record<string, unknown> {
  return { backend: 'dynamodb', table: `${stateTable}-slashing`, ...members };
}

export const PARENT_ACCESS_KEY_ID = 'ASIATEST';

/** Credentials as an instance's role gives them. Test ones. */
const testCredentials: CredentialsProvider = async () => ({
  accessKeyId: PARENT_ACCESS_KEY_ID,
  secretAccessKey: 'TEST-secret-access-key',
  sessionToken: 'TEST-session-token',
  expiration: new Date(Date.now() + 3_600_000),
});

/**
 * The real parent proxy in this process.
 * @param ports of this machine, by vsock port: where the connections of the declared egress end
 */
export async function startParent(
  yaml: string,
  transport: Transport,
  ports: Readonly<Record<number, number>>,
  { handsOver, credentials = testCredentials, instead = {} }: ParentOptions = {},
): Promise<Parent> {
  const loaded = readProxyConfiguration(Buffer.from(yaml), 'enclave.yaml');
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.violations));
  // The declared hosts are AWS's: their connections end here instead.
  const endpoints = loaded.configuration.endpoints.map((endpoint) => ({
    ...endpoint,
    hostname: '127.0.0.1',
    port: ports[endpoint.vsock_port] ?? endpoint.port,
  }));
  const { output, lines, said } = recordedOutput();
  const world = {
    transport: hostileAt(instead, transport),
    clock: systemClock,
    logger: createPlainLogger(output, systemClock),
    metrics: createMetrics(),
    output,
  };
  const proxied = { ...loaded.configuration, endpoints, bytes: handsOver ?? loaded.configuration.bytes };
  const proxy = await startParentProxy(proxied, credentials, world);
  const { tls, probes, metrics } = proxy.ingressPorts;
  return {
    ...proxy,
    lines,
    said,
    tlsUrl: `https://127.0.0.1:${tls}`,
    probesUrl: `http://127.0.0.1:${probes}`,
    metricsUrl: `http://127.0.0.1:${metrics}/metrics`,
    close: () => proxy.shutDown(),
  };
}

function hostileAt(instead: NonNullable<ParentOptions['instead']>, transport: Transport): Transport {
  return {
    ...transport,
    listen: async (port, onConnection, options) => {
      const other = instead[port];
      if (other === 'absent') return { close: async () => undefined };
      return transport.listen(port, other ?? onConnection, options);
    },
  };
}

function portOf({ endpoint }: { readonly endpoint: string }): number {
  return Number(new URL(endpoint).port);
}

type Line = Readonly<Record<string, unknown>>;

function recordedOutput(): { output: Output; lines: Line[]; said: Parent['said'] } {
  const lines: Line[] = [];
  const waiting = new Set<() => void>();
  const output: Output = {
    write(text) {
      for (const line of text.trimEnd().split('\n')) {
        const { record, ...own } = JSON.parse(line) as Line & { readonly record?: Line };
        lines.push(record === undefined ? own : { ...record, source: 'enclave' });
      }
      for (const look of waiting) look();
      return true;
    },
    drained: async () => undefined,
    lostWrites: 0,
    reopen: () => undefined,
    end: async () => undefined,
  };
  const said: Parent['said'] = (message) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no "${message}" in ${JSON.stringify(lines)}`)), LOG_WAIT_MS);
      const look = (): void => {
        const fromEnclave = lines.filter(({ source }) => source === 'enclave');
        const line = fromEnclave.find(({ msg }) => msg === message);
        const failure = fromEnclave.find(({ msg }) => msg === 'cannot start');
        if (line === undefined && failure === undefined) return;
        clearTimeout(timer);
        waiting.delete(look);
        if (line === undefined) reject(new Error(`the start failed: ${JSON.stringify(failure)}`));
        else resolve(line);
      };
      waiting.add(look);
      look();
    });
  return { output, lines, said };
}

function startProgram(
  folder: string,
  endpoints: readonly EgressEndpoint[],
  { ceremony, nsm, baked, patienceMs = PATIENCE_MS }: StartOptions & { ceremony: CeremonyBlock; nsm: NsmEmulator },
): EnclaveProcess {
  const program: ProgramImage = {
    image: { ceremony, configuration: baked === undefined ? 'fetched' : 'baked' },
    aliasPort: ALIAS_PORT,
    patienceMs,
  };
  writeFileSync(join(folder, 'image.json'), JSON.stringify(program));
  if (baked !== undefined) writeFileSync(join(folder, 'baked.yaml'), baked);
  const [dynamodb, kms] = endpoints.map(({ loopback }) => `http://${loopback}:${ALIAS_PORT}`);
  const child = spawn(PINNED_NODE, [PROGRAM, folder], {
    // No region and no credentials: the enclave knows neither. Only where the test's endpoints are.
    env: { ...cleanEnvironment(), AWS_ENDPOINT_URL_DYNAMODB: dynamodb, AWS_ENDPOINT_URL_KMS: kms },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return processOf(tracked(child), nsm);
}

function processOf(child: ChildProcess, nsm: NsmEmulator): EnclaveProcess {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (part) => (text += part));
  const exited = (once(child, 'close') as Promise<[number | null]>).then(([code]) => code);
  const end = (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return exited;
  };
  return {
    nsm,
    console: () => text,
    exited,
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  };
}
