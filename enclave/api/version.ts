// The version of the program, for those who ask a signer, an image or the program. It is not read from package.json: an
// image holds what it imports, and every update of a tool that is named there would change the measurements of an image
// that is otherwise the same.

import { COMMIT } from './commit.ts';

/** The version in package.json; a test compares the two. */
export const VERSION = '0.1.0';

/** What `--version` prints. */
export const VERSION_LINE = `strongroom ${VERSION}, commit ${COMMIT}\n`;
