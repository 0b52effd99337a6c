// `operator verify` of a signer's status, as an auditor runs it: who made the master key, when, by which measurements,
// in which generation, and who wrapped it since. verify_key.py judges the same files, and ends with the same codes.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Ceremony, ceremonyBlock, ceremonyDigest, parseCeremony } from '../../ceremony/definition.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { SHOWN_DEPLOYMENT, SHOWN_IMAGES, type ShownStatus, shownStatus } from '../attestation/shown-status.ts';
import { RECIPIENT } from '../ceremony/custody.ts';
import { keyArn } from '../config/loading.ts';
import { findPython } from '../support/needs.ts';
import { folder, pki, verifyUnderRoot } from './verify-set-up.ts';

const PROGRAM = fileURLToPath(new URL('../../docs/examples/verify_key.py', import.meta.url));
const python = findPython('cryptography');
const [FIRST = { PCR0: '', PCR1: '', PCR2: '' }, NEXT = FIRST] = SHOWN_IMAGES;
const CEREMONY = ceremony({ generation: 1 });
const ROTATED = ceremony({
  generation: 2,
  previous_ceremony: digestOf(CEREMONY),
  retired_kms_keys: [{ arns: [keyArn(1)] }],
});

function ceremony(more: object): Ceremony {
  const kms_keys = [{ arns: [keyArn('generation' in more && more.generation === 2 ? 4 : 1)] }, { arns: [keyArn(2)] }];
  const block = { kms_threshold: 2, kms_keys, root_token_recipients: [RECIPIENT], ...more };
  return parseCeremony('retired_kms_keys' in more ? { ...block, retired_kms_threshold: 1 } : block);
}

function digestOf(of: Ceremony): string {
  return ceremonyDigest(of).toString('hex');
}

let made: ShownStatus;
let rotated: ShownStatus;
beforeAll(async () => {
  made = await shownStatus(pki, [CEREMONY]);
  rotated = await shownStatus(pki, [CEREMONY, ROTATED]);
  const [both] = [['PCR0', 'PCR1', 'PCR2'] as const].map((names) =>
    Object.fromEntries(names.map((name) => [name, [FIRST[name], NEXT[name]]])),
  );
  written('first.json', { measurements: FIRST });
  written('next.json', { measurements: NEXT });
  written('both.json', { measurements: both });
  written('ceremony.yaml', ceremonyBlock(CEREMONY));
  written('rotated.yaml', ceremonyBlock(ROTATED));
});

function written(name: string, value: unknown): string {
  writeFileSync(join(folder, name), JSON.stringify(value));
  return join(folder, name);
}

interface Terms {
  readonly pcrs?: string;
  readonly ceremony?: string;
  readonly deployment?: string;
  readonly network?: string;
}

/** Both verifiers; their exit codes are the same. */
async function judge(status: unknown, terms: Terms = {}, more: readonly string[] = []) {
  const {
    pcrs = 'first',
    ceremony: of = 'ceremony',
    deployment = SHOWN_DEPLOYMENT.id,
    network = SHOWN_DEPLOYMENT.network,
  } = terms;
  const file = written('status.json', status);
  const place = ['--deployment', deployment, '--network', network];
  const at = (name: string): string => join(folder, name);
  const ours = await verifyUnderRoot(
    file,
    '--pcrs',
    at(`${pcrs}.json`),
    '--ceremony',
    at(`${of}.yaml`),
    ...place,
    ...more,
  );
  if (python !== undefined) {
    const digests = of === 'ceremony' ? [digestOf(CEREMONY)] : [digestOf(ROTATED), digestOf(CEREMONY)];
    const theirs = spawnSync(
      python,
      [
        ...[PROGRAM, file, ...place, '--test-root', pki.rootFingerprint],
        ...['--pcrs', at(`${pcrs}.json`)],
        ...digests.flatMap((digest) => ['--ceremony', digest]),
      ],
      { encoding: 'utf8', env: { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' } },
    );
    expect({ code: theirs.status, said: theirs.stdout + theirs.stderr }).toMatchObject({ code: ours.code });
  }
  return ours;
}

const withLinks = (links: unknown): unknown => ({
  custody: { ...made.custody, master_key: { ...made.custody.master_key, links } },
});
const withRow = (row: unknown): unknown => ({ custody: { ...made.custody, root_token: row } });

/** A copy with another first link. */
function withFirstLink(change: Record<string, unknown>): ShownStatus {
  const copy = structuredClone(made);
  if (copy.custody.master_key !== null) Object.assign(copy.custody.master_key.links[0] ?? {}, change);
  return copy;
}

describe('the status of a signer', () => {
  it('tells who made the key, when, in which generation, by which measurements: exit 0', async () => {
    const { code, stdout } = await judge(made);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^1\. the master key was made\nat +\d{4}-\d\d-\d\dT.*\ngeneration +1\nmodule +i-/m);
    expect(stdout).toMatch(new RegExp(`^PCR0\\n {2}${FIRST.PCR0}$`, 'm'));
    expect(stdout).toMatch(/^the root token was encrypted\n/m);
    expect(stdout).toMatch(/^a seal was found removed\n/m);
    expect(stdout).toMatch(/^deployment +strongroom-state, on the network\n +0x4b/m);
    expect(stdout).toMatch(
      /^verdict +an accepted image made this master key, and accepted images alone have wrapped it\n$/m,
    );
  });

  it('tells the chain of wrappings, each image among those that are accepted', async () => {
    const { code, stdout } = await judge(rotated, { pcrs: 'both', ceremony: 'rotated' });
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^1\. the master key was made\n[\s\S]*^2\. the master key was wrapped again\nat .*\ngeneration +2\n/m,
    );
    expect(stdout).toContain(NEXT.PCR0);
  });

  it.each<[string, () => unknown, Terms, number, string]>([
    ['of an image that is not accepted', () => made, { pcrs: 'next' }, 6, 'other_image'],
    ['wrapped by an image that is not accepted', () => rotated, { ceremony: 'rotated' }, 6, 'other_image'],
    ['of another ceremony', () => rotated, { pcrs: 'both' }, 6, 'other_ceremony'],
    ['of another deployment', () => made, { deployment: 'other' }, 6, 'other_record'],
    ['of another network', () => made, { network: `0x${'00'.repeat(32)}` }, 6, 'other_record'],
    ['with another generation than its document', () => withFirstLink({ generation: 2 }), {}, 5, 'other_statement'],
    ['with another member', () => withFirstLink({ counter: '1' }), {}, 5, 'malformed'],
    ['with no link', () => ({ custody: { master_key: { record: '', links: [] } } }), {}, 5, 'malformed'],
    ['without evidence', () => ({ custody: { master_key: null } }), {}, 5, 'missing'],
    ['of a root token without its document', () => without('root_token'), {}, 5, 'not_authentic'],
    ['of a seal that it does not show', () => otherSeal(), {}, 6, 'other_record'],
    ['with a link that is no object', () => withLinks([[]]), {}, 5, 'malformed'],
    ['with a row that is no object', () => withRow([]), {}, 5, 'malformed'],
    ['with a row of another form', () => withRow({ ...made.custody.root_token, content: 5 }), {}, 5, 'malformed'],
    ['of another record', () => ofRecord('00'.repeat(48)), {}, 6, 'other_record'],
  ])('%s: refused', async (_what, status, terms, code, fault) => {
    const judged = await judge(status(), terms);
    expect(judged).toMatchObject({ code, stderr: expect.stringContaining(fault) });
    expect(judged.stdout).toMatch(
      new RegExp(`^${fault} +.*\\n(?: .*\\n)*verdict +${code === 6 ? 'authentic, and NOT' : 'NOT authentic'}`, 'm'),
    );
  });

  describe.runIf(python !== undefined)('before verify_key.py alone', () => {
    const verify = (status: string, ...flags: readonly string[]) => {
      writeFileSync(join(folder, 'shown.json'), status);
      const place = ['--deployment', SHOWN_DEPLOYMENT.id, '--network', SHOWN_DEPLOYMENT.network];
      const known = [...place, '--ceremony', digestOf(CEREMONY), '--test-root', pki.rootFingerprint];
      const argv = [PROGRAM, join(folder, 'shown.json'), ...known, ...flags];
      const env = { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' };
      const { status: code, stdout, stderr } = spawnSync(python ?? '', argv, { encoding: 'utf8', env });
      return { code, said: stdout + stderr };
    };
    const first = (): readonly string[] => ['--pcrs', join(folder, 'first.json')];
    const text = (status: unknown = made): string => JSON.stringify(status);

    it('a root token that is not shown is missing for who has its file, and said of whoever has not', () => {
      const other = written('other.age', 'a ciphertext of somebody else');
      expect(verify(text(), ...first(), '--root-token', other)).toMatchObject({ code: 6 });
      const taken = text(withRow(null));
      const judged = verify(taken, ...first(), '--root-token', other);
      expect(judged).toMatchObject({
        code: 5,
        said: expect.stringContaining('missing: the status shows no root token'),
      });
      const without = verify(taken, ...first());
      expect(without).toMatchObject({ code: 0, said: expect.stringContaining('root_token: none is shown') });
    });

    it('registers one by one, in lists and in the place of those of a file', () => {
      const registers = (image: Readonly<Record<string, string>>): string[] =>
        Object.entries(image).flatMap(([name, value]) => ['--pcr', `${name.slice(3)}=${value}`]);
      expect(verify(text(), ...registers({ ...NEXT }), ...registers({ ...FIRST })).code).toBe(0);
      expect(verify(text(), '--pcrs', join(folder, 'both.json'), ...registers({ ...NEXT })).code).toBe(6);
      expect(verify(text(), ...first(), '--pcr', '0=zz')).toMatchObject({ code: 1 });
    });

    it('what is no status, or has a member twice', () => {
      for (const status of [
        '[]',
        '{}',
        text().replace('{', '{"custody":null,'),
        text(ofRecord(5 as never)),
        '{"custody":[]}',
      ]) {
        expect(verify(status, ...first())).toMatchObject({ code: 1, said: expect.stringMatching(/^verify_key\.py: /) });
      }
    });
  });

  it('of another authority is not authentic, and nothing of it is shown', async () => {
    const forged = await shownStatus(await createNsmPki(), [CEREMONY]);
    const { code, stdout } = await judge(forged);
    expect(code).toBe(5);
    expect(stdout).toContain('not_authentic');
    expect(stdout).not.toContain('the master key was made');
  });

  it('that nothing is compared with is no success; some of the terms are wrong usage, and so are its time and nonce', async () => {
    const file = written('status.json', made);
    expect(await verifyUnderRoot(file)).toMatchObject({
      code: 8,
      stdout: expect.stringContaining('the master key was made'),
    });
    const some = ['--pcrs', join(folder, 'first.json'), '--ceremony', join(folder, 'ceremony.yaml')];
    expect(await verifyUnderRoot(file, ...some)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('all four'),
    });
    for (const flag of [
      ['--at', '2026-01-03T20:41:07Z'],
      ['--nonce', 'ab'],
    ]) {
      expect(await verifyUnderRoot(file, ...flag)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('its own time'),
      });
    }
    const document = written('document.bin', 'no status');
    expect(await verifyUnderRoot(document, '--deployment', 'x')).toMatchObject({ code: 1 });
  });

  it('of a sealed signer, or of one without custody, is no evidence: it says what to take', async () => {
    for (const status of [{ state: 'Sealed', latch: {} }, { custody: null }, {}]) {
      const judged = await verifyUnderRoot(written('status.json', status));
      expect(judged).toMatchObject({ code: 1, stderr: expect.stringContaining('strongroom operator status --json') });
    }
  });

  it('that says that the parent writes the tables has that in its first line and on its page', async () => {
    const report = join(folder, 'report.html');
    const { stdout, code } = await judge({ ...made, tee: { parent_writes_tables: true } }, {}, [
      '--report',
      report,
      '--force',
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^UNSAFE /);
    expect(readFileSync(report, 'utf8')).toContain('UNSAFE');
  });

  it('makes a page with every link, and a report for programs', async () => {
    const report = join(folder, 'report.html');
    await judge(rotated, { pcrs: 'both', ceremony: 'rotated' }, ['--report', report, '--force']);
    const page = readFileSync(report, 'utf8');
    expect(page).toContain('<h2>1. the master key was made</h2>');
    expect(page).toContain('<h2>2. the master key was wrapped again</h2>');
    expect(page).toContain(`<code>${NEXT.PCR0}</code>`);
    expect(page).toMatch(/<dt>generation<\/dt><dd>2<\/dd>/);
    expect(page).not.toMatch(/<script|UNSAFE/);
    const refused = await judge(rotated, { ceremony: 'rotated' }, ['--report', report, '--force', '--json']);
    expect(readFileSync(report, 'utf8')).toMatch(/✘ Authentic, and NOT what was expected[\s\S]*<dt>other_image<\/dt>/);
    expect(JSON.parse(refused.stdout)).toMatchObject({
      verdict: 'not_expected',
      authentic: true,
      failure: { code: 'other_image' },
      master_key: [
        { purpose: 'made', generation: 1 },
        { purpose: 'wrapped', pcrs: { 0: NEXT.PCR0 } },
      ],
      rows: [{ purpose: 'root_token' }, { purpose: 'seal_removed' }],
    });
  });
});

describe('the page of a master key', () => {
  const page = (): string => join(folder, 'kept.html');
  const place = ['--deployment', SHOWN_DEPLOYMENT.id, '--network', SHOWN_DEPLOYMENT.network];
  const terms = (pcrs = 'first'): readonly string[] => [
    ...['--pcrs', join(folder, `${pcrs}.json`), '--ceremony', join(folder, 'ceremony.yaml')],
    ...place,
  ];
  const embeddedIn = (text: string): string => / data-evidence="([^"]*)"/.exec(text)?.[1] ?? '';

  beforeAll(async () => {
    await judge(made, {}, ['--report', page(), '--force']);
  });

  it('holds its evidence: judged again from itself alone, it says what that gives', async () => {
    const judged = await verifyUnderRoot(page(), ...terms(), '--json');
    expect(judged.code).toBe(0);
    expect(JSON.parse(judged.stdout)).toMatchObject({ verdict: 'expected', page_agrees: true });
    const status = createHash('sha256')
      .update(readFileSync(join(folder, 'status.json')))
      .digest('hex');
    expect(readFileSync(page(), 'utf8')).toContain(`<dt>SHA-256</dt><dd><code>${status}</code>`);
  });

  it('lends no terms: those that it was judged by are its own claim', async () => {
    expect((await verifyUnderRoot(page())).code).toBe(8);
    expect((await verifyUnderRoot(page(), ...terms('next'))).code).toBe(6);
  });

  it('is refused when its evidence was altered, and when its words were', async () => {
    const text = readFileSync(page(), 'utf8');
    const block = JSON.parse(Buffer.from(embeddedIn(text), 'base64').toString()) as { status: string };
    const other = { ...block, status: Buffer.from(JSON.stringify(rotated)).toString('base64') };
    const altered = join(folder, 'altered.html');
    writeFileSync(altered, text.replace(embeddedIn(text), Buffer.from(JSON.stringify(other)).toString('base64')));
    const evidence = await verifyUnderRoot(altered, ...terms());
    expect([evidence.code, evidence.stderr]).toEqual([5, expect.stringContaining('it has another SHA-256')]);
    writeFileSync(altered, text.replace(FIRST.PCR0, NEXT.PCR0));
    const words = await verifyUnderRoot(altered, ...terms());
    expect([words.code, words.stderr]).toEqual([1, expect.stringContaining('does NOT say what its evidence')]);
  });
});

function without(row: 'root_token'): ShownStatus {
  const { custody } = structuredClone(made);
  return { ...made, custody: { ...custody, [row]: { ...custody[row], document: '' } } };
}

function otherSeal(): ShownStatus {
  const { custody } = structuredClone(made);
  return { ...made, custody: { ...custody, seal_removal: { ...custody.seal_removal, seal: 'another' } } };
}

function ofRecord(record: string): ShownStatus {
  const { custody } = structuredClone(made);
  return { ...made, custody: { ...custody, master_key: { record, links: custody.master_key?.links ?? [] } } };
}
