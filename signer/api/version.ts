// Not read from package.json: every update of a tool there would change the measurements of an image.

import { COMMIT } from './commit.ts';

export const VERSION = '0.1.0';

export const VERSION_LINE = `strongroom ${VERSION}, commit ${COMMIT}\n`;
