// What the program of the measured image has: stores of many signers, the native BLS core, attested listeners, and the
// parent as the only way to the outside.

import { ceremonyArns } from '../ceremony/definition.ts';
import { type AwsAccess, DEFAULT_AWS_ACCESS } from '../signer/aws/access.ts';
import { createKms, type KmsOptions } from '../signer/aws/kms.ts';
import { type CredentialNeeds, openTableCredentials, type TableCredentials } from '../signer/aws/table-credentials.ts';
import { openNativeBlsCore } from '../signer/bls/open.ts';
import { closeNow, endGracefully, type ListenersParts, type OpenListeners } from '../signer/boot/open-listeners.ts';
import type { OpenAwsAccess, SignerParts } from '../signer/boot/parts.ts';
import { SHARED_STORES } from '../signer/boot/slashing-protection/store.ts';
import type { Enclave, World } from '../signer/boot/world.ts';
import { dynamodbRegions, usesDynamoDB, usesTables } from '../signer/config/egress-needs.ts';
import type { Config } from '../signer/config/options.ts';
import { listenMetricsOnTransport } from '../signer/http/listeners/metrics.ts';
import { listenProbes } from '../signer/http/listeners/probe.ts';
import type { TransportServer } from '../signer/http/listeners/transport-server.ts';
import { statusClass } from '../signer/metrics/metrics.ts';
import type { Transport } from '../signer/native/transport.ts';
import { createKmsRecipient } from './kms/cms.ts';
import { cachedDocuments } from './nsm/evidence.ts';
import { keepReading, openNsmClock } from './nsm/time.ts';
import { firstCredentials, parentCredentials } from './parent/credentials.ts';
import { openEgress } from './parent/egress.ts';
import type { EnclavePlatform, Patience } from './platform.ts';
import { listenRatls } from './ratls/listen.ts';
import { RatlsRotation } from './ratls/rotation.ts';

export interface EnclaveWays {
  readonly enclave: Enclave;
  readonly platform: EnclavePlatform;
  readonly patience?: { readonly credentials?: Patience; readonly readTimeEveryMs?: number } | undefined;
}

export function enclaveParts({ enclave, platform, patience }: EnclaveWays): SignerParts {
  const { parent, hostsPath, aliasPort } = platform;
  const { nsm } = enclave;
  return {
    stores: SHARED_STORES,
    openBlsCore: openNativeBlsCore,
    openKeyFiles: undefined,
    readConfigFile: undefined,
    async openEgress({ endpoints }, { telemetry: { metrics } }, { logger }, opened) {
      const egress = await openEgress(endpoints, {
        parent,
        hostsPath,
        aliasPort,
        onConnection: (endpoint, outcome) => metrics.egressConnections.inc({ endpoint: String(endpoint), outcome }),
        log: logger.module('tee'),
      });
      opened.defer(() => egress.close());
    },
    openAwsAccess: (config, parts, world) =>
      openEnclaveAccess(config, parts, world, { enclave, parent, patience: patience?.credentials }),
    /** When the module stops answering, the clock runs on from the last reading. */
    async openTime({ clock, logger }, opened) {
      const nsmClock = await openNsmClock(nsm, clock);
      keepReading(nsmClock, logger.module('tee'), opened, patience?.readTimeEveryMs);
      return nsmClock;
    },
    openListeners: (config, parts, world, opened) =>
      openEnclaveListeners(config, parts, world, opened, { nsm, transport: parent }),
    describeRoutes: undefined,
    mountAccounts: undefined,
    openReceiptsFolder: undefined,
    openReload: undefined,
    otherMetricNames: undefined,
    readKnownClients: undefined,
  };
}

// Step "credentials" of an enclave. The parent's credentials decrypt, for KMS encrypts its answers to this process. The
// tables, the slashing database and the encryption of shares take sealed credentials that only this image can open.

interface InEnclave {
  readonly enclave: Enclave;
}

async function openEnclaveAccess(
  config: Parameters<OpenAwsAccess>[0],
  { telemetry }: Parameters<OpenAwsAccess>[1],
  { logger, clock }: World,
  { enclave, parent, patience }: { readonly parent: Transport; readonly patience: Patience | undefined } & InEnclave,
): Promise<AwsAccess> {
  const { nitro } = config.tee;
  const isSealed = nitro.table_credentials.ciphertext !== undefined;
  const needs = { dynamodb: usesDynamoDB(config), postgres: config.anti_slashing.backend === 'postgres' };
  // the rules have seen to both
  if (!isSealed && usesTables(config) && !nitro.unsafe_parent_writes_tables)
    throw new Error('tee.nitro.table_credentials is missing');
  if (!isSealed && !needs.dynamodb) return DEFAULT_AWS_ACCESS;
  const [region] = dynamodbRegions(nitro.egress.endpoints);
  if (region === undefined && needs.dynamodb) throw new Error('tee.nitro.egress declares no DynamoDB endpoint');
  const log = logger.module('tee');
  const credentials = parentCredentials(parent, { clock, log });
  await firstCredentials(credentials, { log, patience });
  log.info({ region }, 'the parent gives AWS credentials');
  const recipient = await createKmsRecipient({ nsm: cachedDocuments(enclave.nsm, clock) });
  const { authorities } = enclave;
  const kms = { credentials, recipient, authorities };
  const sealed = await openTableAccess(config.tee, needs, { ...kms, onCall: telemetry.kmsCalled }, { enclave, logger });
  const { aws, databasePassword } = sealed ?? {};
  return {
    client: { ...(region === undefined ? {} : { region }), credentials: aws ?? credentials, authorities },
    kms: { ...kms, ...(aws === undefined ? {} : { encryptCredentials: aws }) },
    databasePassword,
  };
}

async function openTableAccess(
  { nitro }: Config['tee'],
  needs: CredentialNeeds,
  kmsOptions: Omit<KmsOptions, 'ceremonyArns'>,
  { enclave, logger }: InEnclave & Pick<World, 'logger'>,
): Promise<TableCredentials | undefined> {
  const { ciphertext, key_arn: keyArn } = nitro.table_credentials;
  if (ciphertext === undefined || keyArn === undefined) return undefined;
  const { ceremony } = enclave;
  const log = logger.module('tee');
  const kms = createKms({ ...kmsOptions, ceremonyArns: ceremonyArns(ceremony) }, { log });
  try {
    const sealed = { ciphertext: Buffer.from(ciphertext, 'base64'), keyArn };
    const credentials = await openTableCredentials(sealed, needs, { kms, ceremony });
    log.info(
      { key_arn: keyArn, ...needs },
      'the tables and the slashing database are called with the sealed credentials of the configuration',
    );
    return credentials;
  } finally {
    kms.close();
  }
}

// Step "listeners". The certificate is made before the first of them listens.

async function openEnclaveListeners(
  config: Pick<Config, 'metrics' | 'server' | 'tls'>,
  { application: { app, readiness }, telemetry }: ListenersParts,
  { logger, clock }: World,
  opened: AsyncDisposableStack,
  { nsm, transport }: Pick<Enclave, 'nsm'> & { readonly transport: Transport },
): Promise<OpenListeners> {
  const { metrics: metricsSource } = telemetry;
  const log = logger.module('server');
  const open = async (listener: string, port: number, listen: Promise<TransportServer>): Promise<TransportServer> => {
    const server = await listen;
    opened.defer(() => closeNow(server));
    log.info({ listener, port }, 'listening');
    return server;
  };
  const { server: plain, metrics: metricsOptions, tls } = config;
  opened.defer(() => app.close());
  const identities = await startRotation(tls.ratls, telemetry, { logger, clock, nsm }, opened);

  const metricsPort = metricsOptions.listen_port;
  const metrics = await open(
    'metrics',
    metricsPort,
    listenMetricsOnTransport(metricsSource, { transport, port: metricsPort }),
  );
  const secure = await open(
    'tls',
    tls.listen_port,
    listenRatls(app, {
      transport,
      port: tls.listen_port,
      maxConnections: tls.max_connections,
      identities,
      log: logger.module('tls'),
      onRefused: (reason) => metricsSource.connectionsRefused.inc({ reason }),
    }),
  );
  const onRequest = (route: string, status: number): void =>
    metricsSource.httpRequests.inc({ route, status: statusClass(status) });
  const probes = await open(
    'http',
    plain.listen_port,
    listenProbes(readiness, { transport, port: plain.listen_port, onRequest }),
  );
  return {
    http: { port: plain.listen_port },
    tls: { port: tls.listen_port },
    metrics: { port: metricsPort },
    connections: async () => ({
      plain: probes.connections(),
      tls: secure.connections(),
      metrics: metrics.connections(),
    }),
    reloadCertificate: async () => undefined, // it is renewed by itself (ratls/rotation.ts)
    closeGracefully: endGracefully([probes, secure], log),
  };
}

async function startRotation(
  ratls: Config['tls']['ratls'],
  { metrics }: ListenersParts['telemetry'],
  { logger, clock, nsm }: Pick<World, 'logger' | 'clock'> & Pick<Enclave, 'nsm'>,
  opened: AsyncDisposableStack,
): Promise<RatlsRotation> {
  const rotation = new RatlsRotation(
    { intervalSeconds: ratls.rotation_interval_seconds, validitySeconds: ratls.cert_validity_seconds },
    {
      nsm,
      clock,
      log: logger.module('tls'),
      onRotation: (outcome) => {
        metrics.ratlsRotations.inc({ outcome: outcome === 'failed' ? 'failed' : 'ok' });
        if (outcome === 'failed') return;
        metrics.certificateExpiry.set(outcome.identity.expiresAt / 1000, { mode: 'ratls' });
        metrics.nsmClockOffsetSeconds.set(outcome.identity.nsmAheadMs / 1000);
      },
    },
  );
  opened.defer(() => rotation.stop());
  await rotation.start();
  return rotation;
}
