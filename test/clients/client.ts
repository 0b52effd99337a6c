// Plays a row of profiles.ts against a signer: its requests go out as that client writes them, and what comes back is
// what that client makes of it.

import { once } from 'node:events';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { type Body, type Chain, expectedRoot, scheduledFork } from '../expected/expected-root.ts';
import { forkInfoAt, type Members, type MessageType, requestAt, SINCE_PHASE0 } from '../expected/messages.ts';
import type { Profile } from './profiles.ts';

const LIST = '/api/v1/eth2/publicKeys';

interface Heard {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

export type ProfileClient = ReturnType<typeof clientOf>;

/** @param url as its operator writes it, with a slash at the end or without */
export function clientOf(profile: Profile, url: string, password: string) {
  const { origin, protocol, hostname, port } = new URL(url);
  const prefix = profile.joins === 'appended' ? url.slice(origin.length) : '';
  const module = protocol === 'https:' ? https : http;
  const agent = new module.Agent({ keepAlive: true, ...(module === https ? { rejectUnauthorized: false } : {}) });
  const basic = { authorization: `Basic ${Buffer.from(`vc:${password}`).toString('base64')}` };
  let isAsked = profile.credential === 'basic';

  const begin = (path: string, kind: 'probe' | 'list' | 'sign', body?: Body): ClientRequest => {
    const accept = kind === 'probe' ? undefined : profile.accepts?.[kind];
    const headers = { ...profile.headers, ...(accept && { accept }), ...(isAsked && basic) };
    const method = body === undefined ? 'GET' : 'POST';
    return module.request({ agent, hostname, port, method, path: `${prefix}${path}`, headers });
  };
  const ask = async (...request: Parameters<typeof begin>): Promise<Heard | undefined> => {
    const [, kind, body] = request;
    const asked = begin(...request);
    if (kind === 'list' && profile.listMs !== undefined) asked.setTimeout(profile.listMs, () => asked.destroy());
    asked.end(body === undefined ? undefined : JSON.stringify(body));
    let answer: Heard;
    try {
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      answer = { status: response.statusCode ?? 0, headers: response.headers, text: await text(response) };
    } catch {
      return undefined; // the connection ended without an answer, or its time was over
    }
    const challenge = answer.headers['www-authenticate'] ?? '';
    if (isAsked || answer.status !== 401 || !challenge.startsWith('Basic') || profile.credential === 'none')
      return answer;
    isAsked = true;
    return ask(...request);
  };
  const pathOf = (key: string) => `/api/v1/eth2/sign/${key}`;

  return {
    profile,
    probe: () => (profile.probe === undefined ? undefined : ask(profile.probe, 'probe')),
    /** The status is 0 without an answer. Without keys the client does not go on: it ends, or asks again. */
    async list(): Promise<{ readonly status: number; readonly keys: readonly string[] | undefined }> {
      const answer = await ask(LIST, 'list');
      if (answer === undefined) return { status: 0, keys: undefined };
      const { status } = answer;
      const listed = isError(profile, answer) ? undefined : parsed(answer.text);
      if (Array.isArray(listed)) return { status, keys: listed };
      const takesAnything = profile.list === 'runs without keys' && !isError(profile, answer);
      return { status, keys: takesAnything ? [] : undefined };
    },
    /** The signature is undefined when the client takes the answer for a refusal. */
    async sign(key: string, body: Body) {
      for (let asked = 1; ; asked++) {
        const answer = await ask(pathOf(key), 'sign', body);
        if (answer === undefined) return { status: 0, signature: undefined, asked };
        const repeats = profile.repeats?.includes(answer.status) === true && asked < 3;
        if (!repeats) return { status: answer.status, signature: signatureIn(profile, answer), asked };
      }
    },
    /** Its time is over: the connection ends when the request is sent, or when the answer has begun. */
    async hangUp(key: string, body: Body, when: 'asked' | 'answered'): Promise<void> {
      const asked = begin(pathOf(key), 'sign', body);
      asked.on('error', () => undefined);
      const answered = when === 'answered' ? once(asked, 'response') : undefined;
      await new Promise<void>((resolve) => asked.end(JSON.stringify(body), () => resolve()));
      await answered;
      asked.destroy();
    },
    end: () => agent.destroy(),
  };
}

function isError({ errors }: Profile, { status }: Heard): boolean {
  return errors === 'all but 200' ? status !== 200 : errors.includes(status);
}

function signatureIn(profile: Profile, answer: Heard): string | undefined {
  if (isError(profile, answer)) return undefined;
  const isJson = answer.headers['content-type']?.startsWith('application/json') === true;
  if (profile.reads === 'json' && !isJson) return undefined;
  const isText = profile.reads === 'text' || (profile.reads === 'as told' && !isJson);
  const signature = isText ? answer.text : (parsed(answer.text) as Members | undefined)?.['signature'];
  return typeof signature === 'string' && /^0x[0-9a-f]{192}$/.test(signature) ? signature : undefined;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** The types of the present forks; an aggregate has one name in a client. */
export function typesOf({ aggregate }: Profile): readonly MessageType[] {
  const other = aggregate === 'bare' ? 'AGGREGATE_AND_PROOF_V2' : 'AGGREGATE_AND_PROOF';
  return SINCE_PHASE0.filter((type) => type !== other);
}

/** A request in the client's shape, and the root that the rules ask for. */
export function shaped(
  profile: Profile,
  chain: Chain,
  [type, slot, changes]: readonly [MessageType, number, Members?],
): { readonly body: Body; readonly root: Uint8Array } {
  const plain = requestAt(chain, type, slot, changes);
  const root = expectedRoot(plain, chain);
  const stated = plain['aggregate_and_proof'] as Members | undefined;
  const lower = profile.aggregate === 'V2, version in lower case' && type === 'AGGREGATE_AND_PROOF_V2';
  const body = {
    ...plain,
    ...forkOf(profile, chain, type, Math.floor(slot / chain.slotsPerEpoch)),
    ...(lower ? { aggregate_and_proof: { ...stated, version: String(stated?.['version']).toLowerCase() } } : {}),
    ...(profile.root === undefined ? {} : { [profile.root]: `0x${Buffer.from(root).toString('hex')}` }),
  };
  return { body, root };
}

function forkOf(profile: Profile, chain: Chain, type: MessageType, epoch: number): Members {
  if (type === 'VALIDATOR_REGISTRATION' && profile.registrationHasFork === undefined) return {};
  const known = forkInfoAt(chain, epoch);
  if (type === 'VOLUNTARY_EXIT' && profile.exitFork === 'capella') {
    const capella = chain.forks.find(({ name }) => name === 'capella') ?? scheduledFork(chain, epoch);
    const fork = { previous_version: capella.version, current_version: capella.version, epoch: String(capella.epoch) };
    return { fork_info: { ...known, fork } };
  }
  const own = profile.forkEpoch === 'of the message' ? { ...known.fork, epoch: String(epoch) } : known.fork;
  return { fork_info: { ...known, fork: own } };
}
