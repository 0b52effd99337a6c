// A naive remote signer, of its own sources: keys in memory, a schedule, slashing rules in two maps. Right as it
// stands, as far as the conformance kit asks; each fault that is planted makes it wrong in one way, which the kit has
// to find.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { SecretKey } from '@chainsafe/blst';
import { type Body, type Chain, expectedRoot } from '../../../test/expected/expected-root.ts';
import type { Group } from '../../conformance/case.ts';

/** By the group of cases that has to find it. */
export const FAULTS = {
  'signs the root that the client gives': 'answers',
  'compares no root of the client': 'answers',
  'ignores the network': 'answers',
  'takes zeros for its network': 'answers',
  'signs exits with the present fork': 'fork boundaries',
  'signs registrations with its chain': 'shapes',
  'takes the next fork an epoch early': 'fork boundaries',
  'trusts fork_info over the schedule': 'fork boundaries',
  'signs aggregates of Gloas in the container of Electra': 'shapes',
  'keeps no votes': 'EIP-3076',
  'keeps no blocks': 'EIP-3076',
  'looks for double votes only': 'EIP-3076',
  'does not see that it is surrounded': 'EIP-3076',
  'takes a double vote by its head only': 'EIP-3076',
  'signs a lower block': 'EIP-3076',
  'checks before it waits, and records after': 'EIP-3076',
  'refuses the same message again': 'EIP-3076',
  'answers slashing with 400': 'EIP-3076',
  'reads versions in upper case only': 'shapes',
  'reads types in upper case only': 'shapes',
  'reads hex in lower case only': 'shapes',
  'reads numbers as text only': 'shapes',
  'wants all messages bare': 'shapes',
  'wants no unknown members': 'shapes',
  'answers in JSON only': 'answers',
  'signs with the wrong key': 'shapes',
  'knows every key': 'answers',
  'fails on what is no JSON': 'answers',
  'knows no path with two slashes': 'door',
  'says /upcheck in text only': 'door',
  'answers an error in place of its keys': 'door',
  'lists fewer keys while it reloads': 'door',
} as const satisfies Readonly<Record<string, Group>>;

export type Fault = keyof typeof FAULTS;

/** Turns of the event loop: some milliseconds. */
const MOST_TURNS = 2000;

interface Vote {
  readonly source: number;
  readonly target: number;
  readonly content: string;
}

interface Refusal {
  readonly status: number;
  readonly reason: string;
}

type Members = Readonly<Record<string, unknown>>;

const MEMBERS = new Set([
  ...['type', 'fork_info', 'signingRoot', 'signing_root', 'genesis_fork_version', 'attestation', 'beacon_block'],
  ...['aggregation_slot', 'randao_reveal', 'aggregate_and_proof', 'sync_committee_message', 'contribution_and_proof'],
  ...['sync_aggregator_selection_data', 'voluntary_exit', 'validator_registration', 'payload_attestation_message'],
  ...['proposer_preferences', 'execution_payload_envelope', 'builder_request_auth'],
]);

export async function startNaiveSigner(
  secrets: ReadonlyMap<string, SecretKey>,
  chain: Chain,
  fault?: Fault,
): Promise<{ readonly url: string; readonly server: Server }> {
  const signer = new NaiveSigner(secrets, chain, fault);
  const server = createServer((request, response) => void signer.answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

class NaiveSigner {
  readonly #secrets: ReadonlyMap<string, SecretKey>;
  readonly #chain: Chain;
  readonly #fault: Fault | undefined;
  readonly #votes = new Map<string, Vote[]>();
  readonly #blocks = new Map<string, Map<number, string>>();
  #checked = 0;
  #listsAfterReload = Number.POSITIVE_INFINITY;

  constructor(secrets: ReadonlyMap<string, SecretKey>, chain: Chain, fault: Fault | undefined) {
    this.#secrets = secrets;
    this.#chain = chain;
    this.#fault = fault;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET' || request.url === '/reload') return this.#atTheDoor(request, response);
    const key = request.url?.split('/').at(-1) ?? '';
    const sent = await text(request);
    try {
      const [first, second] = [...this.#secrets.values()];
      const secret = this.#secrets.get(key) ?? (this.#has('knows every key') ? first : undefined);
      if (secret === undefined) throw { status: 404, reason: 'no such key' } satisfies Refusal;
      const root = await this.#rootOf(sent, key);
      const signer = this.#has('signs with the wrong key') ? (secret === first ? second : first) : secret;
      const signature = `0x${Buffer.from(signer?.sign(root).toBytes() ?? []).toString('hex')}`;
      const isText = request.headers.accept === 'text/plain' && !this.#has('answers in JSON only');
      response.writeHead(200, { 'content-type': isText ? 'text/plain' : 'application/json' });
      response.end(isText ? signature : JSON.stringify({ signature }));
    } catch (error) {
      const { status = 400, reason = String(error) } = error as Partial<Refusal>;
      const isBad = error instanceof SyntaxError && this.#has('fails on what is no JSON');
      response.writeHead(isBad ? 500 : status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ reason }));
    }
  }

  #atTheDoor({ url = '', method, headers }: IncomingMessage, response: ServerResponse): void {
    const merged = this.#has('knows no path with two slashes') ? url : url.replace(/\/{2,}/g, '/');
    const path = merged.replace(/\/$/, '');
    const say = (status: number, type: string, body: string) =>
      void response.writeHead(status, { 'content-type': type }).end(body);
    const isForeign = headers.authorization?.includes('another') === true;
    if (path === '/reload' && method === 'POST') {
      this.#listsAfterReload = 0;
      say(202, 'text/plain', '');
    } else if (path === '/upcheck') {
      const isRefused = headers.accept === 'application/json' && this.#has('says /upcheck in text only');
      say(isRefused ? 406 : 200, 'text/plain', isRefused ? '' : 'OK');
    } else if (path !== '/api/v1/eth2/publicKeys') say(404, 'application/json', '{}');
    else if (isForeign && this.#has('answers an error in place of its keys')) say(503, 'application/json', '{}');
    else {
      this.#listsAfterReload += 1;
      const isShort = this.#listsAfterReload < 9 && this.#has('lists fewer keys while it reloads');
      say(200, 'application/json', JSON.stringify([...this.#secrets.keys()].slice(isShort ? 1 : 0)));
    }
  }

  #has(fault: Fault): boolean {
    return this.#fault === fault;
  }

  async #rootOf(sent: string, key: string): Promise<Uint8Array> {
    const body = JSON.parse(sent) as Body;
    this.#readStrictly(sent, body);
    this.#checkNetwork(body);
    const given = (body['signingRoot'] ?? body['signing_root']) as string | undefined;
    if (given !== undefined && this.#has('signs the root that the client gives')) return bytes(given);
    const root = this.#computed(body);
    const isOther = given !== undefined && !Buffer.from(root).equals(bytes(given));
    if (isOther && !this.#has('compares no root of the client')) refuse(400, 'another root');
    await this.#protect(body, key, Buffer.from(root).toString('hex'));
    return root;
  }

  /** What is readable, but not to a signer with one of these faults. */
  #readStrictly(sent: string, body: Body): void {
    if (this.#has('reads types in upper case only') && body.type !== body.type.toUpperCase()) refuse(400, 'type');
    if (this.#has('reads hex in lower case only') && /"0x[0-9a-f]*[A-F]/.test(sent)) refuse(400, 'hex');
    if (this.#has('reads numbers as text only') && /:\s*[0-9]/.test(sent)) refuse(400, 'number');
    if (this.#has('reads versions in upper case only') && /"version":"[a-z]/.test(sent)) refuse(400, 'version');
    if (this.#has('wants all messages bare') && /"version":"[A-Za-z]+","data"/.test(sent)) refuse(400, 'data');
    const unknown = Object.keys(body).some((name) => !MEMBERS.has(name));
    if (this.#has('wants no unknown members') && unknown) refuse(400, 'member');
    if (/"data":"0x"/.test(sent)) refuse(400, 'no data');
    if (/"slot":"[^0-9]/.test(sent) || /_root":"0x.{0,63}"/.test(sent)) refuse(400, 'malformed');
  }

  #checkNetwork(body: Body): void {
    const { genesis_validators_root: root } = (body['fork_info'] ?? {}) as Members;
    const isWithoutChain = /^(VALIDATOR_REGISTRATION|(BUILDER_)?REQUEST_AUTH)$/i.test(body.type);
    const isZero = /^0x0{64}$/.test(String(root)) && (isWithoutChain || this.#has('takes zeros for its network'));
    const isOurs = root === undefined || isZero || String(root).toLowerCase() === this.#chain.genesisValidatorsRoot;
    const version = body['genesis_fork_version'] ?? this.#chain.forks[0]?.version;
    if ((!isOurs || version !== this.#chain.forks[0]?.version) && !this.#has('ignores the network'))
      refuse(400, 'network');
    if (!isWithoutChain && root === undefined) refuse(400, 'no fork_info');
  }

  #computed(body: Body): Uint8Array {
    const chain = this.#chain;
    const { fork } = (body['fork_info'] ?? {}) as { fork?: Record<string, string> };
    const [previous = '', current = ''] = [fork?.['previous_version'], fork?.['current_version']].map((version) =>
      String(version).toLowerCase(),
    );
    // The two forks that the client knows, in place of the schedule.
    const stated = chain.forks.map((one) => {
      if (one.version === current) return { ...one, epoch: Number(fork?.['epoch']) };
      return { ...one, epoch: one.version === previous ? 0 : null };
    });
    const trusted = expectedRootOr(body, { ...chain, forks: stated });
    if (/^VOLUNTARY_EXIT$/i.test(body.type) && this.#has('signs exits with the present fork')) {
      return expectedRoot(body, {
        ...chain,
        forks: chain.forks.map((one) => (one.name === 'capella' ? { ...one, version: current } : one)),
      });
    }
    if (/^VALIDATOR_REGISTRATION$/i.test(body.type) && this.#has('signs registrations with its chain')) {
      return expectedRoot({ type: 'VOLUNTARY_EXIT', voluntary_exit: { epoch: '1', validator_index: '1' } }, chain);
    }
    if (this.#has('trusts fork_info over the schedule') && trusted !== undefined) return trusted;
    const early = chain.forks.map((one) => ({ ...one, epoch: one.epoch === null ? null : Math.max(0, one.epoch - 1) }));
    if (this.#has('takes the next fork an epoch early')) return expectedRoot(body, { ...chain, forks: early });
    const right = expectedRoot(body, chain);
    const isFixed = /^(VOLUNTARY_EXIT|VALIDATOR_REGISTRATION|(BUILDER_)?REQUEST_AUTH)$/i.test(body.type);
    const isContradiction = !isFixed && (trusted === undefined || !Buffer.from(trusted).equals(right));
    if (isContradiction) refuse(400, 'the schedule has another fork');
    if (/^AGGREGATE/i.test(body.type) && this.#has('signs aggregates of Gloas in the container of Electra')) {
      return expectedRoot(body, {
        ...chain,
        forks: chain.forks.map((one) => (one.name === 'gloas' ? { ...one, name: 'fulu' } : one)),
      });
    }
    return right;
  }

  async #protect(body: Body, key: string, content: string): Promise<void> {
    const isLate = this.#has('checks before it waits, and records after');
    const refusal = /^ATTESTATION$/i.test(body.type) ? this.#vote(body, key, content) : this.#block(body, key, content);
    if (refusal === undefined) return;
    if (typeof refusal === 'string') refuse(this.#has('answers slashing with 400') ? 400 : 412, refusal);
    if (isLate) await this.#othersCame();
    refusal();
  }

  /** Until another request has been checked and not recorded either, or none comes. */
  async #othersCame(): Promise<void> {
    this.#checked += 1;
    for (let turn = 0; turn < MOST_TURNS && this.#checked < 2; turn++) await new Promise(setImmediate);
    await new Promise(setImmediate);
    this.#checked -= 1;
  }

  /** Why not, or how it is recorded. */
  #vote(body: Body, key: string, content: string): string | (() => void) {
    const { source, target } = body['attestation'] as { source: Members; target: Members };
    const vote = { source: Number(source['epoch']), target: Number(target['epoch']), content };
    const votes = this.#votes.get(key) ?? [];
    const same = votes.find((one) => one.target === vote.target);
    const isByHead = this.#has('takes a double vote by its head only');
    if (vote.source > vote.target) return 'source after target';
    if (same?.content === content) return this.#has('refuses the same message again') ? 'again' : () => undefined;
    if (same !== undefined && !isByHead) return 'double vote';
    const around = votes.some((one) => one.source < vote.source && one.target > vote.target);
    const inside = votes.some((one) => one.source > vote.source && one.target < vote.target);
    const looks = !this.#has('looks for double votes only');
    if (looks && ((around && !this.#has('does not see that it is surrounded')) || inside)) return 'surround vote';
    return () => {
      if (!this.#has('keeps no votes')) this.#votes.set(key, [...(this.#votes.get(key) ?? []), vote]);
    };
  }

  #block(body: Body, key: string, content: string): string | (() => void) | undefined {
    if (!/^BLOCK_V2$/i.test(body.type)) return undefined;
    const slot = Number(((body['beacon_block'] as Members)['block_header'] as Members)['slot']);
    const blocks = this.#blocks.get(key) ?? new Map<number, string>();
    this.#blocks.set(key, blocks);
    const same = blocks.get(slot);
    if (same === content) return () => undefined;
    if (same !== undefined) return 'double block';
    if (blocks.size > 0 && slot < Math.min(...blocks.keys()) && !this.#has('signs a lower block')) return 'below';
    return () => {
      if (!this.#has('keeps no blocks')) blocks.set(slot, content);
    };
  }
}

function expectedRootOr(body: Body, chain: Chain): Uint8Array | undefined {
  try {
    return expectedRoot(body, chain);
  } catch {
    return undefined;
  }
}

function refuse(status: number, reason: string): never {
  throw { status, reason } satisfies Refusal;
}

function bytes(hex: string): Buffer {
  return Buffer.from(hex.slice(2), 'hex');
}
