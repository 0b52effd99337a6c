// The commit that the program was built from, for those who ask a program or a signer. A release replaces this module
// (release/program.ts). A checkout does not know what was changed in it since, and an image is known by its
// measurements, which a commit would change without a change in what runs: both say `unknown`.

export const COMMIT: string = 'unknown';
