// The day of a ceremony: what the printed script records, as it stands, lacks nothing; without any one of its lines the
// record does not end unless somebody says so, and then every reader is told.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Ceremony, ceremonyBlock, ceremonyDigest, parseCeremony } from '../../ceremony/definition.ts';
import { main } from '../../ceremony/main.ts';
import { ceremonyRegister } from '../../ceremony/transcript/meaning.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { SHOWN_DEPLOYMENT, SHOWN_IMAGES, shownStatus } from '../attestation/shown-status.ts';
import { keyArn } from '../config/loading.ts';
import { RECIPIENT } from './custody.ts';

const FIRST = parseCeremony({
  generation: 1,
  kms_threshold: 2,
  kms_keys: [1, 2, 3].map((number) => ({ arns: [keyArn(number)] })),
  root_token_recipients: [RECIPIENT],
});
const ROTATED = parseCeremony({
  ...ceremonyBlock(FIRST),
  generation: 2,
  kms_keys: [2, 3, 4].map((number) => ({ arns: [keyArn(number)] })),
  retired_kms_keys: [{ arns: [keyArn(1)] }],
  previous_ceremony: ceremonyDigest(FIRST).toString('hex'),
});

const pki = await createNsmPki();
const documents = { name: 'the test authority', rootSha256: pki.rootFingerprint };
let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-day-'));
  const [image = {}, next = {}] = SHOWN_IMAGES;
  const pcrs = (registers: object, ceremony: Ceremony): object => ({
    measurements: { ...registers, PCR17: ceremonyRegister(ceremony) },
  });
  const files: Readonly<Record<string, unknown>> = {
    'strongroom.yaml': { network: 'mainnet' },
    'row.json': {},
    'first.yaml': ceremonyBlock(FIRST),
    'first/pcrs.json': pcrs(image, FIRST),
    'first/status.json': await shownStatus(pki, [FIRST]),
    'rotated.yaml': ceremonyBlock(ROTATED),
    'rotated/previous-pcrs.json': pcrs(image, FIRST),
    'rotated/pcrs.json': pcrs(next, ROTATED),
    'rotated/status.json': await shownStatus(pki, [FIRST, ROTATED]),
  };
  mkdirSync(at('first'));
  mkdirSync(at('rotated'));
  for (const [name, value] of Object.entries(files)) writeFileSync(at(name), JSON.stringify(value));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(argv: readonly string[]) {
  const said = { stdout: '', stderr: '' };
  const to = (name: 'stdout' | 'stderr') => ({ write: (text: string) => (said[name] += text) });
  const stdin = (async function* () {
    yield Buffer.alloc(0);
  })();
  const code = await main(argv, { env: {}, stdin, stdout: to('stdout'), stderr: to('stderr'), documents });
  return { code, ...said };
}

type Line = readonly string[];

/** The words of every command of `strongroom ceremony` on the paper, with this world's files and places in them. */
async function linesOfScript(name: string, transcript: string, ...flags: readonly string[]): Promise<Line[]> {
  const { code, stdout } = await run(['script', at(`${name}.yaml`), ...flags]);
  expect(code).toBe(0);
  const commands = stdout
    .replaceAll(' \\\n', ' ')
    .split('\n')
    .filter((line) => line.startsWith('  $ strongroom ceremony '));
  return commands.map((command) =>
    [...command.slice('  $ strongroom ceremony '.length).matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain = '']) =>
      placed(name, transcript, quoted ?? plain),
    ),
  );
}

function placed(name: string, transcript: string, word: string): string {
  if (word === 'transcript.jsonl') return at(transcript);
  if (word === 'transcript.html') return at(`${transcript}.html`);
  if (/^(?:previous-)?pcrs\.json$|^status\.json$/.test(word)) return at(`${name}/${word}`);
  if (/^(?:row\.json|strongroom\.yaml)$/.test(word)) return at(word);
  return word === 'DEPLOYMENT' ? SHOWN_DEPLOYMENT.id : word === '0xROOT' ? SHOWN_DEPLOYMENT.network : word;
}

async function follow(lines: readonly Line[]): Promise<void> {
  for (const line of lines) expect({ line, ...(await run(line)) }).toMatchObject({ line, code: 0 });
}

const isOf = (line: Line, ...words: readonly string[]): boolean => words.every((word, at) => line[at] === word);

describe.each([
  ['of the first boot of enclaves', 'first', []],
  ['of the first boot of ordinary hosts', 'first', ['--signers', 'hosts']],
  ['of a rotation', 'rotated', []],
])('the script %s', (title, name, flags) => {
  it('records, as it stands, all that the day asks for', async () => {
    const lines = await linesOfScript(name, `${title}.jsonl`, ...flags);
    await follow(lines);
    const verified = await run(['transcript', 'verify', at(`${title}.jsonl`)]);
    expect(verified).toMatchObject({ code: 0, stderr: '' });
    expect(verified.stdout).not.toContain('LACKS');
    const page = readFileSync(at(`${title}.jsonl.html`), 'utf8');
    expect(page).not.toMatch(/INCOMPLETE|record still lacks/);
    expect(page).toContain('CUSTODIAN 3</td>');
  });

  it('asks for nothing in vain: without any one of its lines, the record does not end', async () => {
    const lines = await linesOfScript(name, 'x.jsonl', ...flags);
    const counted = lines.filter((line) => isOf(line, 'record') && !['start', 'end'].includes(line[1] ?? ''));
    expect(counted.length).toBeGreaterThan(15);
    for (const [number, left] of counted.entries()) {
      const file = `${title}-${number}.jsonl`;
      const rest = (await linesOfScript(name, file, ...flags)).filter(
        (line) => isOf(line, 'record') && line[1] !== 'end' && line.slice(3).join() !== left.slice(3).join(),
      );
      // What follows from the line that is left out is refused, too: that of a person who is not there.
      for (const line of rest) await run(line);
      const before = readFileSync(at(file));
      const ended = await run(['record', 'end', at(file), '--by', isOf(left, 'record', 'person') ? 'WITNESS' : 'LEAD']);
      expect({ left, ...ended }).toMatchObject({ left, code: 1, stdout: '' });
      expect(ended.stderr).toMatch(/lacks what the day asks for; nothing was written:\n {2}- |introduces/);
      expect(readFileSync(at(file))).toEqual(before);
    }
  });
});

describe('a record that lacks something', () => {
  const say = (file: string, did: string, by: string) =>
    run(['record', 'statement', at(file), '--by', by, '--did', did]);

  it('ends only when that is said, and then its page and every verification say what it lacks', async () => {
    const file = 'incomplete.jsonl';
    const lines = await linesOfScript('first', file, '--signers', 'hosts');
    const withoutRevocation = lines.filter(
      (line) => !(line.includes('CUSTODIAN 2') && line.includes('revoked-encrypt')),
    );
    await follow(withoutRevocation.filter((line) => isOf(line, 'record') && line[1] !== 'end'));
    const lacks = 'nobody says that kms:Encrypt on custody key 2 was revoked';
    const end = ['record', 'end', at(file), '--by', 'LEAD'];
    expect(await run(end)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`  - ${lacks}\n`) });
    expect((await run(['transcript', 'verify', at(file), '--unfinished'])).stdout).toContain(`LACKS: ${lacks}\n`);
    expect(await run([...end, '--incomplete'])).toMatchObject({ code: 0, stderr: expect.stringContaining(lacks) });
    expect(readFileSync(at(file), 'utf8')).toContain('The record ends, and it is not complete.');
    const verify = ['transcript', 'verify', at(file)];
    expect(await run(verify)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(lacks) });
    expect(await run([...verify, '--incomplete'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`LACKS: ${lacks}\n`),
    });
    await run(['transcript', 'page', at(file), '--output', at('incomplete.html')]);
    expect(readFileSync(at('incomplete.html'), 'utf8')).toMatch(
      new RegExp(`INCOMPLETE: what this record lacks</h2>\\s*<p>${lacks}</p>[^]*Head of the record`),
    );
  });

  it('has no grant revoked that came after, and no policy seen before', async () => {
    const file = 'order.jsonl';
    const lines = await linesOfScript('first', file, '--signers', 'hosts');
    await follow(lines.filter((line) => isOf(line, 'record') && line[1] !== 'end'));
    const lacking = async () =>
      (await run(['transcript', 'verify', at(file), '--unfinished'])).stdout.match(/(?<=LACKS: ).*/g);
    expect(await lacking()).toBeNull();
    await say(file, 'granted-encrypt', 'CUSTODIAN 1');
    expect(await lacking()).toEqual(['nobody says that kms:Encrypt on custody key 1 was revoked']);
    await say(file, 'revoked-encrypt', 'CUSTODIAN 1');
    expect(await lacking()).toEqual([expect.stringContaining('no witness looked at the policies of the custody keys')]);
    await say(file, 'saw-policies', 'WITNESS');
    expect(await lacking()).toBeNull();
  });

  it('takes what was forgotten of a person from a second line, and no deed of a key that was not theirs', async () => {
    const file = 'again.jsonl';
    const [start = [], ...lines] = await linesOfScript('first', file, '--signers', 'hosts');
    const carol = ['--name', 'Carol', '--role', 'custodian'];
    const person = (...more: readonly string[]) => run(['record', 'person', at(file), ...carol, ...more]);
    await follow([start]);
    await person('--custody-key', keyArn(1));
    await say(file, 'granted-encrypt', 'Carol');
    await say(file, 'revoked-encrypt', 'Carol');
    expect(await person('--custody-key', '2', '--identified-by', 'passport')).toMatchObject({ code: 0 });
    expect(await person('--custody-key', '4')).toMatchObject({ code: 1, stderr: expect.stringContaining('1 to 3') });
    const { stdout } = await run(['transcript', 'verify', at(file), '--unfinished']);
    expect(stdout).not.toMatch(/custodian of custody key [12]|how Carol was identified|custody key 1 was/);
    expect(stdout).toContain('LACKS: nobody is there as the custodian of custody key 3');
    expect(stdout).toContain('LACKS: nobody says that kms:Encrypt on custody key 2 was granted, and revoked');
    expect(lines.length).toBeGreaterThan(0);
    await say(file, 'granted-encrypt', 'Carol');
    expect(readFileSync(at(file), 'utf8')).toContain('I granted kms:Encrypt on custody keys 1, 2.');
  });

  it('is not helped by a deed without words of its own', async () => {
    const file = 'words.jsonl';
    await follow((await linesOfScript('first', file)).slice(0, 8));
    const said = await say(file, 'said-time', 'WITNESS');
    expect(said).toMatchObject({ code: 1, stderr: expect.stringContaining('--text TEXT is needed') });
  });
});

describe('the paper', () => {
  it('has every digest in groups of eight, a box for every custodian, and no line of text wider than a sheet', async () => {
    const { stdout } = await run(['script', at('first.yaml')]);
    for (const digest of [ceremonyDigest(FIRST).toString('hex'), ceremonyRegister(FIRST)]) {
      const groups = digest.match(/.{8}/g) ?? [];
      for (const row of [groups.slice(0, 4), groups.slice(4, 8), groups.slice(8)])
        expect(stdout).toContain(`${row.join('  ')}  [ ]`);
    }
    for (const number of [1, 2, 3])
      expect(stdout.match(new RegExp(`\\[ \\] CUSTODIAN ${number} `, 'g'))).toHaveLength(2);
    const steps = [...stdout.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
    expect(steps).toEqual(Array.from({ length: 11 }, (_, number) => number + 1));
    const wide = stdout.split('\n').filter((line) => line.length > 80 && !/arn:|\/first\.yaml/.test(line));
    expect(wide).toEqual([]);
  });
});
