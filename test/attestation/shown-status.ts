// The status of a signer whose master key was made by one image and wrapped by the next, with documents of a test
// authority: what people are shown, and judge outside the enclave.

import { type Ceremony, ceremonyDigest, type Deployment } from '../../ceremony/definition.ts';
import { readKeyEvidence, sha384Hex } from '../../common/attestation/key-evidence.ts';
import { readRowEvidence } from '../../common/attestation/row-evidence.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { createNsmEmulator, testPcr } from '../../rehearsal/nsm/emulator.ts';
import type { NsmPki } from '../../rehearsal/nsm/pki.ts';
import { keyProvenance } from '../../signer/chamber/key-provenance.ts';

export const SHOWN_DEPLOYMENT: Deployment = { network: `0x${'4b'.repeat(32)}`, id: 'strongroom-state' };
/** Registers of the images, by generation, as in their pcrs.json. */
export const SHOWN_IMAGES = [0, 30].map((first) => ({
  PCR0: testPcr(first).toString('hex'),
  PCR1: testPcr(first + 1).toString('hex'),
  PCR2: testPcr(first + 2).toString('hex'),
}));
export const SHOWN_TOKEN = 'the ciphertext of the root token';

export interface ShownStatus {
  readonly custody: {
    readonly master_key: { readonly record: string; links: Record<string, unknown>[] } | null;
    readonly root_token: Record<string, unknown> | null;
    readonly seal_removal: Record<string, unknown> | null;
  };
  readonly tee: { readonly parent_writes_tables: boolean };
}

/** @param ceremonies in order; each later one is of a wrapping */
export async function shownStatus(pki: NsmPki, ceremonies: readonly Ceremony[]): Promise<ShownStatus> {
  let text: string | undefined;
  let rows: Pick<ShownStatus['custody'], 'root_token' | 'seal_removal'> = { root_token: null, seal_removal: null };
  for (const [at, ceremony] of ceremonies.entries()) {
    const digest = ceremonyDigest(ceremony);
    const image = [0, 1, 2].map((index) => [index, testPcr((at === 0 ? 0 : 30) + index)] as const);
    const pcrs = { ...Object.fromEntries(image), 8: Buffer.alloc(48), 17: extendedOnce(digest) };
    const nsm = createNsm((await createNsmEmulator({ pki, pcrs })).exchange);
    await nsm.lockPcr(17);
    const provenance = keyProvenance({
      nsm,
      documents: { name: 'the test authority', rootSha256: pki.rootFingerprint },
      measurements: Object.fromEntries(image.map(([index, value]) => [String(index), value.toString('hex')])),
      acceptedImages: SHOWN_IMAGES,
      ceremony,
      deployment: SHOWN_DEPLOYMENT,
    });
    const row = { generation: ceremony.generation, record: `record ${at}` };
    text = await provenance.attest(row, text === undefined ? [] : (readKeyEvidence(text) ?? []));
    if (at > 0) continue;
    const origin = provenance.verify({ masterKey: { ...row, evidence: text }, rootToken: undefined });
    rows = {
      root_token: shown(await provenance.attestRow('root_token', SHOWN_TOKEN, origin)),
      seal_removal: { ...shown(await provenance.attestRow('seal_removed', 'a seal', origin)), seal: 'a seal' },
    };
  }
  const { links } = JSON.parse(text ?? '{"links":[]}') as { links: Record<string, unknown>[] };
  const asShown = links.map((link) => ({ ...link, made_at: 'somewhen', module_id: 'any', measurements: {} }));
  return {
    custody: { master_key: { record: sha384Hex(`record ${ceremonies.length - 1}`), links: asShown }, ...rows },
    tee: { parent_writes_tables: false },
  };
}

function shown(text: string): Record<string, unknown> {
  if (readRowEvidence(text) === undefined) throw new Error('no evidence');
  const row = JSON.parse(text) as Record<string, unknown>;
  return { ...row, made_at: 'somewhen', module_id: 'any', measurements: {} };
}
