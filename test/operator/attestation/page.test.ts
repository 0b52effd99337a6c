// The page of `operator verify --report`: the verdict comes first, every value stands beside what it was compared with,
// and whatever evidence, file names and reference files say is text on it, never markup. Nothing is loaded or run.

import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { extendedOnce } from '../../../common/formats/register.ts';
import { createNsm } from '../../../enclave/nsm/client.ts';
import { createNsmEmulator, type NsmEmulatorOptions, testPcr } from '../../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../../rehearsal/nsm/pki.ts';
import { cannedSigner } from '../canned-signer.ts';
import { makeEnclave, startRatlsServer } from '../ratls-server.ts';
import { runWithRoot } from '../run-operator.ts';

const CONFIGURATION = testPcr(16);
const CEREMONY = testPcr(17);
const OTHER = 'ab'.repeat(48);
const COMMIT = '0123456789'.repeat(4);
const MARKUP = `<script>alert(1)</script><img src=x onerror='a("b")'>&amp;\u202e`;
const TAGS = new Set(
  'html head meta title style body h1 h2 h3 section strong b p ul li dl dt dd div table thead tbody tr th td code span br footer'.split(
    ' ',
  ),
);
const ATTRIBUTES =
  /^(?: (?:lang|charset|name|content|http-equiv|class|role|scope|data-label|data-evidence)="[^"<>]*")*$/;

const pki = await createNsmPki();
const folder = mkdtempSync(join(tmpdir(), 'strongroom-page-'));
const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const measurements = {
  PCR0: hex(testPcr(0)),
  PCR8: [OTHER, hex(testPcr(8))],
  PCR16: hex(extendedOnce(CONFIGURATION)),
};
let document: string;

beforeAll(async () => {
  document = await documentFile('document.bin', {});
  writeFileSync(
    join(folder, 'pcrs.json'),
    JSON.stringify({
      measurements,
      commit: COMMIT,
      tool: { strongroom: '0.1.0' },
      image: { sha256: 'cd'.repeat(32) },
      ceremony: { generation: 1, digest_sha384: hex(CEREMONY) },
      configuration_digest_sha384: OTHER,
    }),
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

async function documentFile(name: string, options: NsmEmulatorOptions): Promise<string> {
  const nsm = createNsm((await createNsmEmulator({ pki, ...options })).exchange);
  for (const [index, digest] of [
    [16, CONFIGURATION],
    [17, CEREMONY],
  ] as const) {
    await nsm.extendPcr(index, digest);
    await nsm.lockPcr(index);
  }
  const file = join(folder, name);
  writeFileSync(file, await nsm.attest({ userData: Buffer.from('ab', 'hex') }));
  return file;
}

async function report(evidence: string, ...args: readonly string[]) {
  const file = join(folder, 'report.html');
  const argv = ['verify', evidence, ...args, '--report', file, '--force'];
  const { code, stderr } = await runWithRoot(argv, { rootFingerprint: pki.rootFingerprint });
  const page = readFileSync(file, 'utf8');
  expectOnlyText(page);
  return { code, stderr, page, text: textOf(page) };
}

/** Every tag and attribute is one of the page's own, and no other `<` is there. */
function expectOnlyText(page: string): void {
  const body = page.replace('<!doctype html>', '').replace(/<style>[^<]*<\/style>/, '');
  for (const [, name = '', attributes = ''] of body.matchAll(/<\/?([^\s>]*)([^>]*)>/g)) {
    expect(TAGS).toContain(name);
    expect(attributes).toMatch(ATTRIBUTES);
  }
  expect(body.replace(/<\/?[a-z0-9]+(?: [^<>]*)?>/g, '')).not.toMatch(/[<>]/);
  expect(page).not.toMatch(/<script|@import|url\(|\u202e/i);
  const [, style = ''] = /<style>([^<]*)<\/style>/.exec(page) ?? [];
  const digest = createHash('sha256').update(style).digest('base64');
  expect(page).toContain(`content="default-src 'none'; style-src 'sha256-${digest}'"`);
}

function textOf(page: string): string {
  const body = page.slice(page.indexOf('<body>')).replace(/<[^>]*>/g, ' ');
  return body.replace(/\s+/g, ' ');
}

describe('the page', () => {
  it('has the verdict first, then the values beside the reference values', async () => {
    const { code, text } = await report(document, '--pcrs', join(folder, 'pcrs.json'));
    expect(code).toBe(14);
    expect(text.indexOf('Authentic, and expected only in what was compared')).toBeLessThan(
      text.indexOf('What was judged'),
    );
    expect(text).not.toContain('✔ Authentic and expected');
    for (const shown of [
      document,
      pki.rootFingerprint,
      COMMIT,
      'exit code 14',
      'compared PCR0 (the image), PCR8 (certificate of the image), PCR16 (configuration)',
      'NOT compared PCR17 (ceremony): no reference value says what it should be; ' +
        'the TLS key: a bare document names the key of no connection',
      sha256(document),
      sha256(join(folder, 'pcrs.json')),
      'binding – not asked no TLS key to compare with',
      `PCR0 ✔ match the image ${hex(testPcr(0))} ${hex(testPcr(0))}`,
      `PCR8 ✔ match certificate of the image ${hex(testPcr(8))} ${OTHER} ${hex(testPcr(8))}`,
      `PCR17 – unchecked ceremony ${hex(extendedOnce(CEREMONY))} none given`,
      'PCR5 – unchecked (zero) PCR6 – unchecked (zero) PCR7',
    ])
      expect(text).toContain(shown);
  });

  it('shows a register of zeros as compared, where zeros were asked for', async () => {
    const zero = '00'.repeat(48);
    const { code, text } = await report(document, '--pcrs', join(folder, 'pcrs.json'), '--pcr', `5=${zero}`);
    expect(code).toBe(14);
    expect(text).toContain(`PCR5 ✔ match (zero) ${zero} ${zero}`);
    expect(text).toContain('PCR6 – unchecked (zero) PCR7 – unchecked (zero)');
  });

  it('holds the digests of the reference file against the registers that they should lead to', async () => {
    const { text } = await report(document, '--pcrs', join(folder, 'pcrs.json'));
    expect(text).toContain(`ceremony, SHA-384 ${hex(CEREMONY)} ✔ PCR17 follows from this digest`);
    expect(text).toContain(`configuration, SHA-384 ${OTHER} ✘ PCR16 does NOT follow from this digest`);
  });

  it('has the window of every certificate at the judged time', async () => {
    const at = new Date(Date.now() + 4 * 3_600_000).toISOString();
    const { code, text } = await report(document, '--at', at, '--pcrs', join(folder, 'pcrs.json'));
    expect(code).toBe(5);
    expect(text).toMatch(/\S+Z \S+Z \S+-enc0123456789abcdef\.us-test-1\.aws [0-9a-f]{64} ✘ ended before/);
    expect(text).toMatch(/\S+Z \S+Z \S+\.zonal\.us-test-1\.test\.nitro-enclaves [0-9a-f]{64} ✔ valid/);
    expect(text).toContain('NOT authentic');
    expect(text).toContain('What the document claims');
    expect(text).toContain('PCR0 – not evaluated the image');
    expect(text).not.toMatch(/✔ match|MISMATCH|follow/);
  });

  it('names each register that is another one, and what was not reached', async () => {
    const { code, text } = await report(document, '--pcr', `0=${OTHER}`, '--pcr', `16=${OTHER}`);
    expect(code).toBe(6);
    expect(text).toContain(
      `wrong_pcr a register has none of the values that were asked for: PCR16 is ${hex(extendedOnce(CONFIGURATION))}`,
    );
    expect(text).toContain(`PCR0 ✘ MISMATCH the image ${hex(testPcr(0))} ${OTHER}`);
    const { code: none, text: page } = await report(document);
    expect(none).toBe(8);
    expect(page).toContain('Authentic; no reference values given');
    writeFileSync(join(folder, 'nothing'), 'nothing of the kind');
    const { code: refused, text: nothing } = await report(join(folder, 'nothing'));
    expect(refused).toBe(5);
    expect(nothing.match(/– not reached/g)).toHaveLength(7);
  });

  it('has both pieces of evidence of a running enclave', async () => {
    const enclave = await makeEnclave({ pki });
    const server = await startRatlsServer(enclave.identity, cannedSigner, enclave.nonceRoute);
    const { code, text } = await report(server.url, '--pcr', `0=${hex(testPcr(0))}`, '--any-configuration');
    await server.close();
    expect(code).toBe(14);
    expect(text.match(/✔ passed/g)).toHaveLength(16);
    expect(text).toContain('reference values PCR0 any configuration');
    expect(text).toContain('The evidence in the TLS certificate: authentic, and expected only in what was compared');
    expect(text).toContain(
      'The fresh document, bound to this connection: authentic, and expected only in what was compared',
    );
  });
});

describe('a page that is judged again', () => {
  const known = (...more: readonly string[]) => ['--pcrs', join(folder, 'pcrs.json'), ...more];
  const again = (page: string, ...args: readonly string[]) => {
    const file = join(folder, 'again.html');
    writeFileSync(file, page);
    return runWithRoot(['verify', file, ...args], { rootFingerprint: pki.rootFingerprint });
  };

  it('has the same verdict, at its own time, of its own evidence, and says what that gives', async () => {
    const { page } = await report(document, ...known('--pcr', `17=${hex(extendedOnce(CEREMONY))}`));
    const { code, stdout } = await again(page, ...known('--json'));
    expect(code).toBe(14);
    expect(JSON.parse(stdout)).toMatchObject({
      verdict: 'partly_compared',
      page_agrees: true,
      evidence_sha256: [sha256(document)],
      reference_file_sha256: sha256(join(folder, 'pcrs.json')),
    });
    const at = /^judged at +(\S+)$/m.exec((await again(page, ...known())).stdout)?.[1] ?? '';
    expect((await again(page, ...known('--at', at))).code).toBe(14);
    const other = await again(page, ...known('--at', '2026-01-03T20:41:07Z'));
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining(`leave them out: this page is of ${at}`)]);
    expect((await again(page, ...known())).stdout).toMatch(
      /^the page +says what its evidence and its own terms give$/m,
    );
  });

  it('of a running enclave has certificate and fresh document, each with its nonce and its time', async () => {
    const enclave = await makeEnclave({ pki });
    const server = await startRatlsServer(enclave.identity, cannedSigner, enclave.nonceRoute);
    const image = ['--pcr', `0=${hex(testPcr(0))}`, '--any-configuration'];
    const { page, text } = await report(server.url, ...image);
    await server.close();
    expect(text).toContain('compared PCR0 (the image), the TLS key');
    // A green heading would contradict the banner.
    expect(text.match(/authentic and expected(?! only)/gi)).toBeNull();
    const { code, stdout } = await again(page, ...image, '--json');
    expect(code).toBe(14);
    const judged = JSON.parse(stdout) as { page_agrees: boolean; findings: { evidence: string; verdict: string }[] };
    expect(judged.page_agrees).toBe(true);
    expect(judged.findings.map(({ evidence, verdict }) => [evidence, verdict])).toEqual([
      ['certificate', 'expected'],
      ['fresh_document', 'expected'],
    ]);
  });

  it('lends no reference values: what it was judged by is its own claim', async () => {
    const { page } = await report(document, ...known());
    expect((await again(page)).code).toBe(8);
    expect((await again(page, '--pcr', `0=${OTHER}`, '--any-configuration')).code).toBe(6);
  });

  it('is refused when its evidence was altered, and when its words were', async () => {
    const { page } = await report(document, ...known());
    const [whole = '', base64 = ''] = / data-evidence="([^"]*)"/.exec(page) ?? [];
    const block = JSON.parse(Buffer.from(base64, 'base64').toString()) as { evidence: { bytes: string }[] };
    const [one] = block.evidence;
    if (one === undefined) throw new Error('no evidence');
    const bytes = Buffer.from(one.bytes, 'base64');
    bytes[700] = (bytes[700] ?? 0) ^ 1;
    const withBlock = (value: object): string =>
      page.replace(base64, Buffer.from(JSON.stringify(value)).toString('base64'));
    const altered = withBlock({ ...block, evidence: [{ ...one, bytes: bytes.toString('base64') }] });
    const refused: readonly (readonly [string, number, string])[] = [
      [altered, 5, 'its evidence was altered'],
      ...['at', 'madeAt'].map((name) => [withBlock({ ...block, [name]: 9e15 }), 5, 'another form'] as const),
      [page.replace(whole, ''), 5, 'it holds no evidence'],
      [page.replace(whole, `${whole}${whole}`), 5, 'more than one'],
      [withBlock({ ...block, more: 1 }), 5, 'another form'],
      [
        page.replace('– Authentic, and expected only in what was compared', '✔ Authentic and expected'),
        1,
        'does NOT say',
      ],
      [withBlock({ ...block, subject: 'another file' }), 1, 'does NOT say'],
    ];
    for (const [text, code, words] of refused) {
      expect(text).not.toBe(page);
      expect(await again(text, ...known())).toMatchObject({ code, stderr: expect.stringContaining(words) });
    }
    expect((await again(page, ...known('--at', '2026-01-01T00:00:00Z'))).code).toBe(1);
  });

  it('marks a commit whose sources were changed', async () => {
    const pcrs = join(folder, 'modified.json');
    writeFileSync(pcrs, JSON.stringify({ measurements, commit: `${COMMIT}-modified` }));
    const { text } = await report(document, '--pcrs', pcrs);
    expect(text).toContain('sources the reference file names no commit, or one whose sources were changed (-modified)');
    expect((await report(document, ...known())).text).not.toContain('sources the reference file');
  });
});

describe('what others wrote is text on the page', () => {
  it('of the document, of its certificates, of the reference file, of file names', async () => {
    const name = MARKUP.replaceAll('/', '∕');
    const deviate: NsmEmulatorOptions['deviate'] = (payload) => new Map([...payload, ['module_id', MARKUP]]);
    const file = await documentFile(name, { deviate, moduleId: "<b>&'" });
    const pcrs = join(folder, `${name}.json`);
    writeFileSync(pcrs, JSON.stringify({ measurements, commit: MARKUP, tool: { strongroom: '<i>0.1.0</i>' } }));
    const { code, page } = await report(file, '--pcrs', pcrs);
    expect(code).toBe(14);
    const escaped =
      '&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&#39;a(&quot;b&quot;)&#39;&gt;&amp;amp;';
    expect(page).toContain(`<dd>${escaped}\\u{202e}</dd>`);
    expect(page).toContain(escaped.replace('/', '∕'));
    expect(page).toContain('\\&lt;b\\&gt;&amp;&#39;.us-test-1.aws');
    expect(page).toContain('&lt;i&gt;0.1.0&lt;/i&gt;');
    expect(page).not.toContain('built from commit');
  });

  it('of an unknown member, which a refusal quotes', async () => {
    const file = await documentFile('unknown', { deviate: (payload) => new Map([...payload, [MARKUP, 1]]) });
    const { code, page } = await report(file);
    expect(code).toBe(5);
    expect(page).toContain('the field &lt;script&gt;');
  });
});

describe('its file', () => {
  it('is not replaced unasked, which is said before anything is judged', async () => {
    const file = join(folder, 'kept.html');
    writeFileSync(file, 'kept');
    const run = (...more: string[]) =>
      runWithRoot(['verify', document, '--report', file, ...more], { rootFingerprint: pki.rootFingerprint });
    const { code, stdout, stderr } = await run();
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('kept.html exists');
    expect(stderr).toContain('--force');
    expect(readFileSync(file, 'utf8')).toBe('kept');
    expect((await run('--force')).code).toBe(8);
    expect(readFileSync(file, 'utf8')).toContain('<!doctype html>');
    expect(readdirSync(folder).filter((name) => name.endsWith('.new'))).toEqual([]);
    const nowhere = join(folder, 'nowhere', 'report.html');
    const missing = await runWithRoot(['verify', document, '--report', nowhere], {
      rootFingerprint: pki.rootFingerprint,
    });
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('cannot be written (ENOENT)');
  });
});
