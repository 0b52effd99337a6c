// Public and captured vectors through the real program over HTTP: what clients sent, and the bytes they got.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deployKeys } from '../support/deployment.ts';
import { call, signCall } from '../support/requests.ts';
import { vectorJson, vectorLines } from '../support/vectors.ts';

interface Web3SignerVector {
  readonly id: string;
  readonly request: Record<string, unknown> & { type: string; fork_info?: { genesis_validators_root: string } };
  readonly signing_root_used_for_signature: string;
  readonly published_signing_root: string;
  readonly secret_key: string;
  readonly pubkey: string;
  readonly expected_signature: string;
}

const EXAMPLES = 'signing/web3signer-openapi-examples.json';
const CAPTURES = 'signing/lodestar-captures.jsonl';
const CAPTURE_KEYS = 'signing/lodestar-keys.json';

const examples = vectorJson<{ vectors: Web3SignerVector[] }>(EXAMPLES);
describe.skipIf(examples === undefined)("Web3Signer's OpenAPI examples", () => {
  const vectors = examples?.vectors ?? [];
  const [{ secret_key: secret, pubkey: publicKey } = { secret_key: '', pubkey: '' }] = vectors;
  const supported = vectors.filter(({ request }) => !['BLOCK', 'DEPOSIT'].includes(request.type));
  const isAggregate = ({ request }: Web3SignerVector) => request.type.startsWith('AGGREGATE_AND_PROOF');

  // Their requests contradict each other (one slot, many blocks): each is signed on a database of its own kind.
  async function signerFor(): Promise<RunningSigner> {
    return deployKeys([{ secret, publicKey }], {
      network: 'custom',
      custom_network: {
        genesis_validators_root: '0x04700007fabc8282644aed6d1c7c9e21d38a03a0c4ba193f3afe428824b3a673',
        genesis_fork_version: '0x00000001',
        capella_fork_version: '0x00000001',
      },
      anti_slashing: { backend: 'noop' },
    }).start({ args: ['--allow-unsafe-noop-anti-slashing'] });
  }

  let signer: RunningSigner;
  beforeAll(async () => {
    signer = await signerFor();
  });
  afterAll(() => signer.stop());

  it('aggregates are refused: this network does not say which fork 0x00000001 is, so no container is theirs', async () => {
    const aggregates = supported.filter(isAggregate);
    expect(aggregates).toHaveLength(8);
    for (const { request } of aggregates) {
      const answer = await signCall(signer.url, publicKey, request);
      const message = expect.stringContaining('custom_network.fork_versions');
      expect(answer.json).toMatchObject({ code: 400, reason: 'unsupported_fork', message });
    }
  });

  const signed = supported.filter((vector) => !isAggregate(vector));
  it.each(signed.map((vector) => [vector.id, vector] as const))('%s', async (_id, vector) => {
    // The two wrong published roots are replaced by the recomputed ones.
    const body = { ...vector.request, signingRoot: vector.signing_root_used_for_signature };
    const answer = await signCall(signer.url, publicKey, body, { headers: { accept: 'application/json' } });
    expect(answer.json).toEqual({ signature: vector.expected_signature });
  });

  it("a root that is another message's is refused, not signed", async () => {
    const [first, second] = [signed[0], signed.at(-1)];
    const body = { ...first?.request, signingRoot: second?.signing_root_used_for_signature };
    expect(first?.signing_root_used_for_signature).not.toBe(second?.signing_root_used_for_signature);
    const answer = await signCall(signer.url, publicKey, body);
    expect(answer.json).toMatchObject({ code: 400, reason: 'signing_root_mismatch' });
  });

  it('BLOCK and DEPOSIT are refused by design', async () => {
    for (const { request } of vectors.filter((vector) => !supported.includes(vector))) {
      const answer = await signCall(signer.url, publicKey, request);
      expect(answer.json).toMatchObject({ code: 400, reason: 'unsupported_operation' });
    }
  });
});

interface Capture {
  readonly set: string;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly body: string;
  readonly response: { readonly status: number; readonly contentType: string; readonly body: string };
}

const captured = vectorLines<Capture>(CAPTURES);
describe.skipIf(captured === undefined)('captured Lodestar traffic', () => {
  const keys = vectorJson<{ pubkey: string; secret: string }[]>(CAPTURE_KEYS) ?? [];
  const captures = captured ?? [];
  const sets = [...new Set(captures.map(({ set }) => set))];

  it('there are two sets', () => expect(sets).toHaveLength(2));

  // Lodestar's preset of these captures runs on mainnet's constants; its client sends no credentials.
  it.each(sets)('%s: each answer is equal byte for byte, in order, on a fresh database', async (set) => {
    const deployment = deployKeys(
      keys.map(({ pubkey, secret }) => ({ publicKey: pubkey, secret })),
      {
        static_auth: {
          policies: [{ name: 'client', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] }],
          anonymous: { policies: ['client'] },
        },
      },
    );
    const signer = await deployment.start();
    const differing: object[] = [];
    for (const { method, path, headers, body, response } of captures.filter((capture) => capture.set === set)) {
      const accept = headers[headers.findIndex((name) => name.toLowerCase() === 'accept') + 1] ?? '*/*';
      const sent = method === 'GET' ? {} : { body };
      const answer = await call(`${signer.url}${path}`, { method, token: null, headers: { accept }, ...sent });
      const sameType = answer.headers.get('content-type')?.startsWith(response.contentType) === true;
      if (path === '/upcheck')
        expect(answer.text).toBe('OK'); // the captured stand-in answered JSON there
      else if (answer.status !== response.status || answer.text !== expectedBody(path, response.body) || !sameType) {
        differing.push({ path, body, expected: response, got: answer.text });
      }
    }
    await signer.stop();
    expect(differing).toEqual([]);
  });
});

/** Web3Signer lists keys in no order; ours are ascending (specification/signing.md#public-keys). */
function expectedBody(path: string, body: string): string {
  return path.endsWith('publicKeys') ? JSON.stringify((JSON.parse(body) as string[]).sort()) : body;
}
