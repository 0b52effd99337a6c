// The commit that the program was built from. A release replaces this module (tools/release/program.ts). A checkout
// does not know what was changed in it since, and an image is known by its measurements: both say `unknown`.

export const COMMIT: string = 'unknown';
