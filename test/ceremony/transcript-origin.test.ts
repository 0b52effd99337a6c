// A transcript that keeps who made the master key: the documents of the enclaves themselves, judged when they are
// recorded and whenever somebody verifies the record or prints it.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Ceremony, ceremonyBlock, ceremonyDigest, parseCeremony } from '../../ceremony/definition.ts';
import { main } from '../../ceremony/main.ts';
import { EMPTY_TRANSCRIPT, following, readTranscript, type Transcript } from '../../ceremony/transcript/chain.ts';
import type { EntryDraft } from '../../ceremony/transcript/entries.ts';
import { readShownEvidence } from '../../common/attestation/shown-evidence.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { SHOWN_DEPLOYMENT, SHOWN_IMAGES, type ShownStatus, shownStatus } from '../attestation/shown-status.ts';
import { keyArn } from '../config/loading.ts';
import { RECIPIENT } from './custody.ts';

const [FIRST, NEXT] = SHOWN_IMAGES;
const CEREMONY = parseCeremony({
  generation: 1,
  kms_threshold: 1,
  kms_keys: [{ arns: [keyArn(1)] }],
  root_token_recipients: [RECIPIENT],
});
const ROTATED = parseCeremony({
  generation: 2,
  kms_threshold: 1,
  kms_keys: [{ arns: [keyArn(2)] }],
  retired_kms_keys: [{ arns: [keyArn(1)] }],
  previous_ceremony: ceremonyDigest(CEREMONY).toString('hex'),
  root_token_recipients: [RECIPIENT],
});
const PLACE = ['--deployment', SHOWN_DEPLOYMENT.id, '--network', SHOWN_DEPLOYMENT.network];

const pki = await createNsmPki();
const folder = mkdtempSync(join(tmpdir(), 'strongroom-origin-'));
let made: ShownStatus;
let rotated: ShownStatus;
let transcripts = 0;
beforeAll(async () => {
  made = await shownStatus(pki, [CEREMONY]);
  rotated = await shownStatus(pki, [CEREMONY, ROTATED]);
});
afterAll(() => rmSync(folder, { recursive: true }));

function written(name: string, value: unknown): string {
  writeFileSync(join(folder, name), JSON.stringify(value));
  return join(folder, name);
}

/** With the test authority in the place of AWS's, unless `root` is another. */
async function run(argv: readonly string[], root = pki.rootFingerprint) {
  const out = { stdout: '', stderr: '' };
  const collect = (name: 'stdout' | 'stderr') => ({
    write: (text: string) => {
      out[name] += text;
    },
  });
  const stdin = (async function* () {
    yield Buffer.alloc(0);
  })();
  const documents = { name: 'the test authority', rootSha256: root };
  const code = await main(argv, { env: {}, stdin, stdout: collect('stdout'), stderr: collect('stderr'), documents });
  return { code, ...out };
}

/** A transcript of this ceremony that records these images. */
async function begun(ceremony: Ceremony, images: readonly object[]): Promise<string> {
  const file = join(folder, `transcript-${++transcripts}.jsonl`);
  const block = written('ceremony.yaml', ceremonyBlock(ceremony));
  expect(await run(['record', 'start', file, '--ceremony', block, '--title', 'Test'])).toMatchObject({ code: 0 });
  expect(await run(['record', 'person', file, '--name', 'Lea Lead', '--role', 'lead'])).toMatchObject({ code: 0 });
  for (const measurements of images)
    expect(await run(['record', 'pcrs', file, '--pcrs', written('pcrs.json', { measurements })])).toMatchObject({
      code: 0,
    });
  return file;
}

function recorded(file: string, status: unknown, place: readonly string[] = PLACE, root?: string) {
  return run(['record', 'master-key', file, '--status', written('status.json', status), ...place], root);
}

describe('the evidence of a master key in a transcript', () => {
  it('is recorded, verified again and printed: who made it, when, by which measurements, in which generation', async () => {
    const file = await begun(CEREMONY, [FIRST ?? {}]);
    expect(await recorded(file, made)).toMatchObject({ code: 0 });
    await run(['record', 'end', file, '--by', 'Lea Lead', '--incomplete']);
    const verified = await run(['transcript', 'verify', file, '--incomplete']);
    expect(verified.code).toBe(0);
    expect(verified.stdout).toMatch(
      new RegExp(`^  1\\. made in generation 1 at \\d{4}-.*Z by an enclave with PCR0 ${FIRST?.PCR0}$`, 'm'),
    );
    expect(verified.stdout).toMatch(
      /^Master key \(line 4\) of the deployment strongroom-state, record [0-9a-f]{96}:$/m,
    );
    expect(verified.stdout).toMatch(/^ {2}root token encrypted at .*, SHA-384 [0-9a-f]{96}$/m);
    const page = join(folder, 'page.html');
    expect(await run(['transcript', 'page', file, '--output', page, '--force'])).toMatchObject({ code: 0 });
    expect(readFileSync(page, 'utf8')).toMatch(
      /<h2>Master key \(line 4\), [\s\S]*<h2>1\. the master key was made[\s\S]*<dt>generation<\/dt><dd>1</,
    );
    expect(readFileSync(page, 'utf8').replaceAll(' ', '')).toContain(FIRST?.PCR0);
  });

  it('has every wrapping, of images that are all recorded', async () => {
    const file = await begun(ROTATED, [FIRST ?? {}, NEXT ?? {}]);
    expect(await recorded(file, rotated)).toMatchObject({ code: 0 });
    const { stdout } = await run(['transcript', 'verify', file, '--unfinished']);
    expect(stdout).toMatch(/^ {2}1\. made in generation 1 at .*\n {2}2\. wrapped again in generation 2 at /m);
  });

  it('is refused, and nothing is written, when it is of another image, ceremony, deployment or authority', async () => {
    const file = await begun(CEREMONY, [FIRST ?? {}, NEXT ?? {}]);
    const before = readFileSync(file, 'utf8');
    const other = await shownStatus(await createNsmPki(), [CEREMONY]);
    const refused: [unknown, readonly string[], string][] = [
      [rotated, PLACE, 'other_ceremony'],
      [made, ['--deployment', 'other', '--network', SHOWN_DEPLOYMENT.network], 'other_record'],
      [made, ['--deployment', SHOWN_DEPLOYMENT.id, '--network', `0x${'00'.repeat(32)}`], 'other_record'],
      [other, PLACE, 'not_authentic'],
      [{ custody: { master_key: null } }, PLACE, 'no status of a signer'],
      [{ state: 'Sealed' }, PLACE, 'no status of a signer'],
    ];
    for (const [status, place, why] of refused) {
      expect(await recorded(file, status, place)).toMatchObject({ code: 1, stderr: expect.stringContaining(why) });
    }
    const strange = await begun(CEREMONY, [NEXT ?? {}]);
    expect(await recorded(strange, made)).toMatchObject({ code: 1, stderr: expect.stringContaining('other_image') });
    const unmeasured = await begun(CEREMONY, []);
    expect(await recorded(unmeasured, made)).toMatchObject({ code: 1, stderr: expect.stringContaining('other_image') });
    expect(readFileSync(file, 'utf8')).toBe(before);
  });

  it('under another root than the one that is trusted leaves the whole record unverified', async () => {
    const file = await begun(CEREMONY, [FIRST ?? {}]);
    await recorded(file, made);
    for (const command of [
      ['verify', file, '--unfinished'],
      ['page', file, '--output', join(folder, 'p.html'), '--force'],
    ]) {
      const judged = await run(['transcript', ...command], 'ab'.repeat(32));
      expect(judged).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('NOT VERIFIED') });
      expect(judged.stderr).toContain('line 4 has evidence that is refused (not_authentic)');
    }
  });

  it('that says something else than it names is no entry, whoever writes the lines anew', async () => {
    const file = await begun(CEREMONY, [FIRST ?? {}]);
    await recorded(file, made);
    const { entries } = read(file);
    const last = entries.at(-1);
    if (last?.entry !== 'master_key') throw new Error('no such entry');
    const { entry, deployment, record, evidence } = last;
    const said: Extract<EntryDraft, { entry: 'master_key' }> = { entry, deployment, record, evidence };
    const before = read(file, -1);
    const problem = (change: Partial<typeof said>): string => {
      const next = following(before, { ...said, ...change } as EntryDraft, new Date(Date.now() + 60_000));
      return next.ok ? '' : next.problem;
    };
    expect(problem({})).toBe('');
    expect(problem({ record: '00'.repeat(48) })).toContain('another record');
    expect(problem({ evidence: said.evidence.replace(':', ': ') })).toContain('must be the evidence');
    expect(problem({ root_token: said.evidence })).toContain('must be the evidence of a root token');
    expect(problem({ deployment: { network: 'mainnet', id: 'x' } })).toContain('64 hex digits');
    const others = await shownStatus(pki, [ROTATED]);
    const other = readShownEvidence(others)?.key ?? '';
    expect(problem({ evidence: other })).toContain('another ceremony');
  });
});

/** @param upTo lines; negative: from the end */
function read(file: string, upTo?: number): Transcript {
  const lines = readFileSync(file, 'utf8')
    .split(/(?<=\n)/)
    .slice(0, upTo);
  const transcript = lines.length === 0 ? EMPTY_TRANSCRIPT : readTranscript(Buffer.from(lines.join('')));
  if ('ok' in transcript && !transcript.ok) throw new Error(transcript.problem);
  return transcript as Transcript;
}
