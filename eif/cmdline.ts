// What the command line of an image says to its init (eif/init/settings.c), for whoever reads the image: it is measured
// in PCR0 and PCR1, so a word there is a statement that clients can refuse. No image for Nitro needs any.

const NITRO_PARENT_CID = '3';
const PARENT_CID = /(?:^| )strongroom\.parent_cid=(\S*)/;
const UNSIGNED_EVIDENCE = /(?:^| )strongroom\.evidence=unsigned(?: |$)/;

/** Statements that no image for Nitro makes, one a line; none: it is one for Nitro. */
export function testOnlyStatements(cmdline: string): readonly string[] {
  const cid = PARENT_CID.exec(cmdline)?.[1] ?? NITRO_PARENT_CID;
  return [
    ...(cid === NITRO_PARENT_CID ? [] : [`its parent is CID ${cid}, not ${NITRO_PARENT_CID}`]),
    ...(UNSIGNED_EVIDENCE.test(cmdline) ? ['its evidence is unsigned: no client and no key policy believes it'] : []),
  ];
}
