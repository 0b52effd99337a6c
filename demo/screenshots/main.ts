// `make screenshots`: the pictures in docs/images, made anew from real programs.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { stringify } from 'yaml';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { cleanEnvironment, type RunningSigner, runStrongroom, tracked } from '../../rehearsal/signer.ts';
import { type Stage, setStage } from '../../rehearsal/stage.ts';
import { terminalSvg } from './terminal-svg.ts';

// `operator top` as it looks over a fleet that signs: three replicas of the real program under a custody ceremony on
// stand-ins, with a TEST key, of which one ends before the last look.

const PROGRAM = join(import.meta.dirname, '../../bin/strongroom');
const SIZE = { columns: 132, rows: 24 };
/** Before the replica ends, and after. */
const LOOKS = { all: 24, away: 3 };
const FIRST_TARGET = 421_875;
/** Waited after a vote: the rate rises and falls. */
const PAUSES_MS = [40, 25, 12, 25];
const VOTES_OF_A_PAUSE = 120;

interface Picture {
  readonly lines: readonly string[];
  readonly columns: number;
}

async function topPicture(): Promise<Picture> {
  const stage = await setStage('');
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-screenshots-'));
  try {
    const replicas = [await stage.startReplica(), await stage.startReplica(), await stage.startReplica()];
    const tokens = await makeTokens(stage, replicas);
    writeProfiles(folder, replicas, tokens.management);
    const voting = new AbortController();
    const voted = vote(stage, replicas.slice(0, 2), tokens.client, voting.signal);
    try {
      return { lines: await lastLook(folder, replicas), columns: SIZE.columns };
    } finally {
      voting.abort();
      await voted;
    }
  } finally {
    await stage.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Tokens {
  readonly management: string;
  readonly client: string;
}

async function makeTokens(stage: Stage, [first]: readonly RunningSigner[]): Promise<Tokens> {
  if (first === undefined) throw new Error('no replica');
  const made = async (token: string, words: readonly string[]): Promise<string> => {
    const answer = await stage.operator(first, token, ['auth', ...words, '--json']);
    return (JSON.parse(answer) as { readonly token?: string }).token ?? '';
  };
  const management = await made(await stage.custody.rootToken(stage.table), ['token', 'create', '--management']);
  const rules = JSON.stringify([{ effect: 'allow', scopes: ['sign', 'public_keys'], keys: [stage.key.publicKey] }]);
  await made(management, ['policy', 'create', '--name', 'validator-client', '--rules', rules]);
  return { management, client: await made(management, ['token', 'create', '--policies', 'validator-client']) };
}

function writeProfiles(folder: string, replicas: readonly RunningSigner[], token: string): void {
  const file = join(folder, 'token');
  writeFileSync(file, token, { mode: 0o600 });
  const profiles = replicas.map(({ url }, at) => [
    `signer-${at + 1}`,
    { signer_url: url, allow_plaintext_signer: true, token: `@${file}` },
  ]);
  mkdirSync(join(folder, 'strongroom'), { mode: 0o700 });
  const text = stringify({ profiles: Object.fromEntries(profiles) });
  writeFileSync(join(folder, 'strongroom/operator.yaml'), text, { mode: 0o600 });
}

/** One vote after another, since the store keeps the highest; every eighth is asked for again with another root. */
async function vote(
  stage: Stage,
  replicas: readonly RunningSigner[],
  token: string,
  signal: AbortSignal,
): Promise<void> {
  for (let count = 0; !signal.aborted; count++) {
    const replica = replicas[count % replicas.length];
    if (replica === undefined) return;
    const isRefused = count % 8 === 7;
    await stage.vote(replica, token, isRefused ? FIRST_TARGET : FIRST_TARGET + count + 1);
    await pause(PAUSES_MS[Math.floor(count / VOTES_OF_A_PAUSE) % PAUSES_MS.length]);
  }
}

/** What stands on a terminal of its own (`script` of util-linux) when one replica has been away for some looks. */
async function lastLook(folder: string, replicas: readonly RunningSigner[]): Promise<readonly string[]> {
  const words = replicas.flatMap(({ metricsUrl }, at) => ['--replica', `signer-${at + 1}`, '--metrics', metricsUrl]);
  const command = `stty cols ${SIZE.columns} rows ${SIZE.rows}; exec ${PROGRAM} operator top --interval 1 ${words.join(' ')}`;
  const child = tracked(
    spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
      env: { ...cleanEnvironment(), XDG_CONFIG_HOME: folder, TERM: 'xterm' },
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  );
  let shown = '';
  let isAway = false;
  let isDone = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    const looks = shown.split(HOME).length - 1;
    if (looks >= LOOKS.all && !isAway) {
      isAway = true;
      void replicas.at(-1)?.stop();
    }
    if (looks > LOOKS.all + LOOKS.away && !isDone) {
      isDone = true;
      child.stdin.write('q');
    }
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`operator top: exit code ${code}: ${shown.slice(-500)}`);
  const [whole = ''] = shown
    .split(HOME)
    .slice(1)
    .filter((look) => look.includes(END))
    .slice(-1);
  return whole.slice(0, whole.indexOf(END)).replaceAll(REST, '').split('\r\n');
}

// operator/top/screen.ts
const HOME = '\u001B[H';
const REST = '\u001B[K';
const END = '\u001B[J';

// The auditor's report as a browser shows it: over a real document of AWS, at its time, which lies beside the project
// (shared/vectors).

const DOCUMENT = join(import.meta.dirname, '../../../shared/vectors/attestation/base-2026-indefinite-map.bin');
const PCR0 = '4b8d4cf2a99e05ce1b5bddaf9d21cb446eb0e606c5bebd1ebf02b473a22165f7b68b0bb0d1ac5a90f0311e493522cfab';
const TIME = '2026-01-03T20:41:10Z';
const REPORT_SIZE = '860,650';
/** It asks nothing of other hosts; root has no sandbox. */
const FLAGS = [
  ...['--headless', '--disable-gpu', '--disable-quic', '--no-first-run', '--hide-scrollbars'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];

/** @throws Error when there is no Chromium, or no document */
async function reportPicture(file: string): Promise<void> {
  if (!existsSync(DOCUMENT)) throw new Error(`${DOCUMENT} is not there`);
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-screenshots-'));
  try {
    copyFileSync(DOCUMENT, join(folder, 'evidence.bin'));
    const words = [
      'evidence.bin',
      '--at',
      TIME,
      '--pcr',
      `0=${PCR0}`,
      '--any-configuration',
      '--report',
      'report.html',
    ];
    const { code, stderr } = await runStrongroom(['operator', 'verify', ...words], { cwd: folder });
    if (code !== EXIT.partlyCompared) throw new Error(`operator verify: exit code ${code}: ${stderr}`);
    const place = [
      `--user-data-dir=${join(folder, 'chromium')}`,
      `--window-size=${REPORT_SIZE}`,
      `--screenshot=${file}`,
    ];
    const page = pathToFileURL(join(folder, 'report.html')).href;
    const { status, error, stderr: said } = spawnSync('chromium', [...FLAGS, ...place, page], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`chromium: ${error?.message ?? said}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const IMAGES = join(import.meta.dirname, '../../docs/images');

mkdirSync(IMAGES, { recursive: true });
await reportPicture(join(IMAGES, 'report.png'));
const { lines, columns } = await topPicture();
writeFileSync(join(IMAGES, 'top.svg'), terminalSvg(lines, { columns, title: 'strongroom operator top' }));
process.stdout.write('docs/images/report.png and docs/images/top.svg are made\n');
