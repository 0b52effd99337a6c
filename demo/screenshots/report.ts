// The auditor's report as a browser shows it: over a real document of AWS, at its time, which lies beside the project
// (shared/vectors).

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { runStrongroom } from '../../tools/rehearsal/signer.ts';

const DOCUMENT = join(import.meta.dirname, '../../../shared/vectors/attestation/base-2026-indefinite-map.bin');
const PCR0 = '4b8d4cf2a99e05ce1b5bddaf9d21cb446eb0e606c5bebd1ebf02b473a22165f7b68b0bb0d1ac5a90f0311e493522cfab';
const TIME = '2026-01-03T20:41:10Z';
const SIZE = '860,650';
/** It asks nothing of other hosts; root has no sandbox. */
const FLAGS = [
  ...['--headless', '--disable-gpu', '--disable-quic', '--no-first-run', '--hide-scrollbars'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];

/** @throws Error when there is no Chromium, or no document */
export async function reportPicture(file: string): Promise<void> {
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
    const place = [`--user-data-dir=${join(folder, 'chromium')}`, `--window-size=${SIZE}`, `--screenshot=${file}`];
    const page = pathToFileURL(join(folder, 'report.html')).href;
    const { status, error, stderr: said } = spawnSync('chromium', [...FLAGS, ...place, page], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`chromium: ${error?.message ?? said}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
