// What no package registry has: how each client of docs/guides/clients.md behaves at this signer's door. A row is a
// client, written from its sources and from what was run; client.ts plays it. All of them write numbers as text, hex
// and keys in lower case with 0x, and the version of a block in capitals.

type Headers = Readonly<Record<string, string>>;

export interface Profile {
  readonly client: string;
  /** What it does with its signer's URL: `appended` behind a slash gives `//api/v1/…`, `absolute` drops its path. */
  readonly joins: 'absolute' | 'appended' | 'relative';
  /** `basic after 401`: by https alone, and only when it is asked for it. */
  readonly credential: 'basic' | 'basic after 401' | 'none';
  /** Beside Authorization. */
  readonly headers: Headers;
  /** Of one kind of request alone. */
  readonly accepts?: { readonly list?: string; readonly sign?: string };
  /** Asked at its start, before the list. */
  readonly probe?: string;
  /** How it comes by the list; and, when the list does not come, what is next. */
  readonly list: 'configured' | 'ends without' | 'asks later' | 'runs without keys';
  /** How long it waits for an answer, as the guide has it. */
  readonly waits: string;
  /** How long for the list, when there is a limit. */
  readonly listMs?: number;
  /** It asks for the same again after these statuses, and no other client does. */
  readonly repeats?: readonly number[];
  /** Statuses that are errors to it; of others it reads the body. */
  readonly errors: 'all but 200' | readonly number[];
  /** How it reads a signature: of JSON, of text, or as the Content-Type says. */
  readonly reads: 'json' | 'text' | 'as told';
  readonly root: 'signingRoot' | 'signing_root' | undefined;
  readonly aggregate: 'bare' | 'V2' | 'V2, version in lower case';
  readonly exitFork: 'present' | 'capella';
  readonly registrationHasFork?: true;
  /** The epoch of fork_info is that of the message. */
  readonly forkEpoch?: 'of the message';
}

const JSON_BODY = { 'content-type': 'application/json' };
const GO = { 'user-agent': 'Go-http-client/1.1', 'accept-encoding': 'gzip' };
const JSON_TYPE = 'application/json';
const USUAL = { credential: 'basic', headers: JSON_BODY, errors: 'all but 200', root: 'signingRoot' } as const;

export const PROFILES: readonly Profile[] = [
  // sigp/lighthouse, validator_client/signing_method/src/{lib,web3signer}.rs, 2024 to 2026; initialized_validators.rs
  {
    ...USUAL,
    client: 'Lighthouse',
    joins: 'relative',
    accepts: { sign: JSON_TYPE },
    list: 'configured',
    waits: '12 s',
    reads: 'json',
    aggregate: 'bare',
    exitFork: 'capella',
  },
  // Consensys/teku, validator/client: signer/ExternalSigner{,Upcheck}.java, loader/PublicKeyLoader.java (no limit for
  // the list), loader/HttpClientExternalSignerFactory.java (HTTP/1.1, Authenticator for https), 2022 to 2026-08
  {
    ...USUAL,
    client: 'Teku',
    joins: 'absolute',
    credential: 'basic after 401',
    headers: { ...JSON_BODY, 'user-agent': 'Java-http-client/21' },
    probe: '/upcheck',
    list: 'ends without',
    waits: '5 s',
    reads: 'as told',
    aggregate: 'bare',
    exitFork: 'present',
  },
  // OffchainLabs/prysm, validator/keymanager/remote-web3signer/internal/client.go, v3 to v7 (run: 7.1.6 of 2026-07):
  // 404 and 412 are named in its log, and read alike; its unmarshalResponse loses the error: an object is an empty list
  {
    ...USUAL,
    client: 'Prysm',
    joins: 'appended',
    headers: { ...JSON_BODY, ...GO },
    list: 'runs without keys',
    waits: 'until its duty ends',
    errors: [400, 500],
    reads: 'as told',
    aggregate: 'V2',
    exitFork: 'present',
  },
  // status-im/nimbus-eth2, beacon_chain/spec/eth2_apis/rest_remote_signer_calls.nim, eth2_rest_json_serialization.nim,
  // validators/validator_pool.nim (WEB3_SIGNER_DELAY_TOLERANCE), 24.9.0 of 2024-09, and main for the aggregates
  {
    ...USUAL,
    client: 'Nimbus',
    joins: 'absolute',
    accepts: { list: JSON_TYPE, sign: JSON_TYPE },
    list: 'asks later',
    listMs: 3_000,
    waits: '3 s',
    repeats: [404, 412, 500],
    reads: 'as told',
    aggregate: 'V2, version in lower case',
    exitFork: 'capella',
    registrationHasFork: true,
  },
  // ChainSafe/lodestar, externalSignerClient of @lodestar/validator, 2024-10 to 2026, by Node's fetch
  {
    ...USUAL,
    client: 'Lodestar',
    joins: 'appended',
    credential: 'none',
    headers: { ...JSON_BODY, 'user-agent': 'node', 'accept-language': '*', 'sec-fetch-mode': 'cors' },
    accepts: { list: JSON_TYPE, sign: JSON_TYPE },
    list: 'ends without',
    waits: 'no limit of its own',
    reads: 'json',
    aggregate: 'V2',
    exitFork: 'capella',
    forkEpoch: 'of the message',
  },
  // grandinetech/grandine, signer/src/web3signer/{api,types}.rs, 2025-11 to 2026: no status is looked at
  {
    ...USUAL,
    client: 'Grandine',
    joins: 'absolute',
    headers: { ...JSON_BODY, accept: '*/*' },
    list: 'asks later',
    waits: 'no limit of its own',
    errors: [],
    reads: 'json',
    aggregate: 'bare',
    exitFork: 'present',
  },
  // serenita-org/vero, src/providers/remote_signer.py, src/schemas/remote_signer.py, 2026-08 (run: 1.4.1)
  {
    ...USUAL,
    client: 'Vero',
    joins: 'absolute',
    headers: { ...JSON_BODY, 'user-agent': 'vero/v1.4.1', 'accept-encoding': 'gzip, deflate' },
    accepts: { list: JSON_TYPE, sign: 'text/plain' },
    probe: '/healthcheck',
    list: 'ends without',
    listMs: 10_000,
    waits: '5 to 10 s',
    reads: 'text',
    root: undefined,
    aggregate: 'V2',
    exitFork: 'capella',
  },
  // ssvlabs/ssv, ssvsigner/web3signer/{web3signer,types}.go, 2.3.7 of 2025-11 (run)
  {
    ...USUAL,
    client: 'SSV',
    joins: 'absolute',
    headers: { ...JSON_BODY, ...GO },
    accepts: { sign: JSON_TYPE },
    list: 'asks later',
    listMs: 10_000,
    waits: '10 s',
    reads: 'json',
    root: 'signing_root',
    aggregate: 'bare',
    exitFork: 'present',
    registrationHasFork: true,
  },
];
