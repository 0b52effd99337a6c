// What this boot measures (specification/enclave.md#measured-configuration), before anything acts on it. A register
// that somebody has used before is refused: its value would not say what this boot runs.

import { extendedOnce, PCR_BYTES } from '../../common/formats/register.ts';
import { type Measurements, type Nsm, type NsmDescription, REPORTED_PCRS } from '../../signer/tee/nsm.ts';

/** Zero in debug mode, whatever the image is (specification/evidence.md#checks, debug). */
const IMAGE_PCRS = [0, 1, 2] as const;
const NEEDED_PCRS = 18;
const UNUSED = Buffer.alloc(PCR_BYTES);

export async function describeNsm(nsm: Nsm): Promise<NsmDescription> {
  const description = await nsm.describe();
  if (description.digest !== 'SHA384') throw new Error(`the NSM measures with ${description.digest}, not with SHA384`);
  if (description.maxPcrs < NEEDED_PCRS) {
    throw new Error(`the NSM has ${description.maxPcrs} registers, and ${NEEDED_PCRS} are needed`);
  }
  return description;
}

/**
 * @param digest SHA-384 of what is measured
 * @throws Error when the register was used before, or does not hold what it was given
 */
export async function measureOnce(nsm: Nsm, index: number, digest: Uint8Array): Promise<void> {
  const before = await nsm.describePcr(index);
  if (before.locked || !before.value.equals(UNUSED)) {
    throw new Error(
      `PCR${index} was ${before.locked ? 'locked' : 'extended'} before this start: only the first start in an enclave is measured; end the enclave and run it again`,
    );
  }
  await nsm.extendPcr(index, digest);
  await nsm.lockPcr(index);
  const after = await nsm.describePcr(index);
  if (!after.locked || !after.value.equals(extendedOnce(digest))) {
    throw new Error(`PCR${index} does not hold what it was extended with: the NSM cannot be relied on`);
  }
}

export async function readMeasurements(nsm: Nsm): Promise<Measurements> {
  const measurements: Record<string, string> = {};
  for (const index of REPORTED_PCRS) measurements[index] = (await nsm.describePcr(index)).value.toString('hex');
  return measurements;
}

/** Nobody who checks its documents will believe such an enclave. */
export function isDebugMode(measurements: Measurements): boolean {
  const zero = UNUSED.toString('hex');
  return IMAGE_PCRS.every((index) => measurements[index] === zero);
}
