// How every AWS client of the signer reaches its service: nothing here is unbounded.

import { Agent, type AgentOptions, type RequestOptions } from 'node:https';
import { renewedWhenLate } from '../../common/flow/in-time.ts';
import type { AuthoritiesOf } from '../tee/authorities.ts';
import { type AwsFault, awsFault } from './errors.ts';

/** Of one call, the first included. */
const MAX_ATTEMPTS = 3;
const CONNECT_TIMEOUT_MS = 1_000;
const REQUEST_TIMEOUT_MS = 2_000;
const MAX_SOCKETS = 256;
/** The SDK's providers wait for ever for an agent of ECS or EKS that takes a connection and does not answer. */
export const CREDENTIALS_TIMEOUT_MS = 5_000;

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

type AwsCredentialProvider = () => Promise<AwsCredentials & { readonly expiration?: Date }>;

export interface AwsClientOptions {
  readonly region?: string;
  readonly endpoint?: string;
  readonly credentials?: AwsCredentials | AwsCredentialProvider;
  /** The process-wide roots unless given. */
  readonly authorities?: AuthoritiesOf | undefined;
  readonly maxSockets?: number;
  readonly maxAttempts?: number;
  readonly connectTimeoutMs?: number;
  /** Of one attempt: until its answer begins, and for every silence within the answer. */
  readonly requestTimeoutMs?: number;
  /** At a call's end, its retries included: `PutItem`, and `ok` or the fault. */
  readonly onCall?: ((operation: string, outcome: 'ok' | AwsFault, seconds: number) => void) | undefined;
}

export function awsClientConfiguration(options: AwsClientOptions) {
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const agent = { keepAlive: true, maxSockets: options.maxSockets ?? MAX_SOCKETS };
  return {
    ...(options.region === undefined ? {} : { region: options.region }),
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    ...credentialsInTime(options.credentials),
    retryMode: 'standard',
    maxAttempts: options.maxAttempts ?? MAX_ATTEMPTS,
    requestHandler: {
      connectionTimeout: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      requestTimeout,
      // Else the SDK only logs a warning when the time is up.
      throwOnRequestTimeout: true,
      // The SDK's request timeout ends with the first byte of the answer.
      socketTimeout: requestTimeout,
      httpAgent: agent,
      httpsAgent: options.authorities === undefined ? agent : vouchedAgent(agent, options.authorities),
    },
  };
}

/** Of the client's own default chain too, which gets the client's settings. */
function credentialsInTime(given: AwsClientOptions['credentials']) {
  if (given !== undefined) return { credentials: typeof given === 'function' ? inTime(() => given) : given };
  return { credentialDefaultProvider: (client: ClientSettings) => inTime(() => defaultChain(client)) };
}

type Sdk = typeof import('@aws-sdk/credential-provider-node');
type ClientSettings = Parameters<Sdk['defaultProvider']>[0];
type Chain = ReturnType<Sdk['defaultProvider']>;

function defaultChain(client: ClientSettings): Chain {
  let chain: Promise<Chain> | undefined;
  return async (...given) => {
    // By its default: a bundle does not find the names of CommonJS.
    chain ??= import('@aws-sdk/credential-provider-node').then(({ default: sdk }) => sdk.defaultProvider(client));
    return (await chain)(...given);
  };
}

function inTime<Given extends unknown[], Found extends AwsCredentials>(
  make: () => (...given: Given) => Promise<Found>,
) {
  return renewedWhenLate(make, CREDENTIALS_TIMEOUT_MS, () => {
    const message = `no AWS credentials within ${CREDENTIALS_TIMEOUT_MS} ms: their provider does not answer`;
    throw Object.assign(new Error(message), { name: 'TimeoutError' }); // as the SDK calls its own
  });
}

function vouchedAgent(options: AgentOptions, authorities: AuthoritiesOf): Agent {
  const agent = new Agent(options);
  const connect: Agent['createConnection'] = agent.createConnection.bind(agent);
  agent.createConnection = (asked: RequestOptions & { readonly servername?: string }, callback) => {
    const ca = authorities(asked.servername || (asked.host ?? ''));
    return connect(ca === undefined ? asked : { ...asked, ca: [...ca] }, callback);
  };
  return agent;
}

export function callWatcher(onCall: NonNullable<AwsClientOptions['onCall']>) {
  return <Call, Answer>(next: (call: Call) => Promise<Answer>, context: { readonly commandName?: string }) =>
    async (call: Call): Promise<Answer> => {
      const startedAt = performance.now();
      const operation = (context.commandName ?? 'unknown').replace(/Command$/, '');
      const end = (outcome: 'ok' | AwsFault) => onCall(operation, outcome, (performance.now() - startedAt) / 1_000);
      try {
        const answer = await next(call);
        end('ok');
        return answer;
      } catch (error) {
        end(awsFault(error));
        throw error;
      }
    };
}

export const CALL_WATCHER_STEP = { step: 'initialize', name: 'strongroomCallWatcher' } as const;
