// A signer with keys and tokens of its own in a temporary folder: what most end-to-end tests start from.

import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningSigner, type SignerOptions, startSigner } from '../../rehearsal/signer.ts';
import { TEST_TOKEN, type TestKey, testKey } from './requests.ts';

export const FULL_ACCESS = { name: 'full', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] };

export interface Deployment {
  readonly folder: string;
  readonly keys: readonly TestKey[];
  readonly config: Record<string, unknown>;
  /** Start the signer on this folder; again after a stop or a kill. */
  start(options?: SignerOptions): Promise<RunningSigner>;
}

/** Raw test keys on disk and a static token that may do everything. */
export function deploy(keyCount: number, config: Record<string, unknown> = {}): Deployment {
  return deployKeys(
    Array.from({ length: keyCount }, (_, index) => testKey(index)),
    config,
  );
}

/** As deployKeys, with a file for each key. */
export function deployKeyFiles(keys: readonly TestKey[], config: Record<string, unknown> = {}): Deployment {
  const deployment = deployKeys([], config);
  for (const [index, key] of keys.entries()) {
    writeFileSync(join(deployment.folder, 'keys', `test-key-${index}.yaml`), descriptorOf(key));
  }
  return { ...deployment, keys };
}

export function deployKeys(keys: readonly TestKey[], config: Record<string, unknown> = {}): Deployment {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-test-'));
  const keyFolder = join(folder, 'keys');
  mkdirSync(keyFolder);
  if (keys.length > 0) writeFileSync(join(keyFolder, 'test-keys.yaml'), keys.map(descriptorOf).join('---\n'));
  const whole = {
    key_sources: { filesystem: { paths: [keyFolder] } },
    anti_slashing: { path: join(folder, 'slashing_protection.sqlite') },
    static_auth: { policies: [FULL_ACCESS], tokens: [{ secret: TEST_TOKEN, policies: ['full'] }] },
    ...config,
  };
  return {
    folder,
    keys,
    config: whole,
    start: (options = {}) => startSigner({ folder, ...options, config: { ...whole, ...options.config } }),
  };
}

function descriptorOf({ secret }: TestKey): string {
  return `type: file-raw\nkeyType: BLS\nprivateKey: "${secret}"\n`;
}
