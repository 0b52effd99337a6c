// The Gloas vectors (vectors/gloas/sepolia.json): one request of each kind with its roots and signature, and every
// other shape in which a client may send the same message (specification/signing.md#bodies, #gloas).

import { vectorJson } from './vectors.ts';

export interface GloasVector {
  readonly name: string;
  readonly request: GloasBody;
  readonly object_root: string;
  readonly domain: string;
  readonly signing_root: string;
  readonly signature: string;
}

export interface GloasBody {
  readonly type: string;
  readonly [member: string]: unknown;
}

interface GloasVectors {
  readonly key: { readonly secret: string; readonly pubkey: string };
  readonly vectors: readonly GloasVector[];
}

export const gloasVectors = vectorJson<GloasVectors>('gloas/sepolia.json');

/**
 * Empty `data` of BUILDER_REQUEST_AUTH has a root, and is refused as the builder specification has it since. No API has
 * a type for inclusion lists (EIP-7805) yet.
 */
export const refusedGloasVectors =
  gloasVectors?.vectors.filter(
    ({ name, request }) => name === 'builder request auth, empty' || request.type === 'INCLUSION_LIST',
  ) ?? [];

export const signedGloasVectors = gloasVectors?.vectors.filter((vector) => !refusedGloasVectors.includes(vector)) ?? [];

const TYPE_NAMES: Readonly<Record<string, readonly string[]>> = {
  AGGREGATE_AND_PROOF: ['AGGREGATE_AND_PROOF', 'AGGREGATE_AND_PROOF_V2'],
  AGGREGATE_AND_PROOF_V2: ['AGGREGATE_AND_PROOF', 'AGGREGATE_AND_PROOF_V2'],
  PAYLOAD_ATTESTATION_MESSAGE: ['PAYLOAD_ATTESTATION_MESSAGE', 'PAYLOAD_ATTESTATION'],
  BUILDER_REQUEST_AUTH: ['BUILDER_REQUEST_AUTH', 'REQUEST_AUTH'],
};
const MEMBER_NAMES: Readonly<Record<string, readonly string[]>> = {
  payload_attestation_message: ['payload_attestation_message', 'payload_attestation_data', 'payload_attestation'],
  builder_request_auth: ['builder_request_auth', 'request_auth'],
};

const COMMON_MEMBERS = ['type', 'fork_info', 'signingRoot'];

type Members = Record<string, unknown>;

/** The member that carries the message. */
export function memberOf(body: GloasBody): string {
  return Object.keys(body).find((name) => !COMMON_MEMBERS.includes(name)) ?? '';
}

/** Every spelling of a request that has to be answered alike. The given one is among them. */
export function shapesOf(body: GloasBody): GloasBody[] {
  const member = memberOf(body);
  const { [member]: message, ...common } = body;
  const messages = shapesOfMessage(body.type, message as Members);
  const bodies = (TYPE_NAMES[body.type] ?? [body.type]).flatMap((type) =>
    (MEMBER_NAMES[member] ?? [member]).flatMap((name) =>
      messages.map((shape): GloasBody => ({ ...common, type, [name]: shape })),
    ),
  );
  const [first] = bodies as [GloasBody];
  return [...bodies, { ...first, type: first.type.toLowerCase() }, withNumbers(first), withPlainHex(first)];
}

function shapesOfMessage(type: string, message: Members): Members[] {
  if (type === 'ATTESTATION') return [message];
  const version = String(message['version'] ?? 'GLOAS');
  const spellings = [version.toUpperCase(), version.toLowerCase(), `${version[0]}${version.slice(1).toLowerCase()}`];
  if (type === 'BLOCK_V2') return spellings.map((spelled) => ({ ...message, version: spelled }));
  const isVersioned = typeof message['data'] === 'object';
  const bare = isVersioned ? (message['data'] as Members) : message;
  const drafts = type === 'PROPOSER_PREFERENCES' ? [draftPreferences(bare)] : [];
  return [bare, ...drafts].flatMap((data) => [
    data,
    { version: spellings[1], ...data },
    ...spellings.map((spelled) => ({ version: spelled, data })),
  ]);
}

/** An early draft of Prysm. */
function draftPreferences({ target_gas_limit, ...preferences }: Members): Members {
  return { ...preferences, gas_limit: target_gas_limit };
}

/** Numbers as JSON numbers, where they are safe integers. */
function withNumbers(body: GloasBody): GloasBody {
  return mapTexts(body, (text) =>
    /^[0-9]+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : text,
  ) as GloasBody;
}

/** Hex without 0x, in upper case. */
function withPlainHex(body: GloasBody): GloasBody {
  return mapTexts(body, (text) => (text.startsWith('0x') ? text.slice(2).toUpperCase() : text)) as GloasBody;
}

function mapTexts(value: unknown, map: (text: string) => unknown): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, map));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapTexts(item, map)]));
}
