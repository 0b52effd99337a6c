// The program of the measured image (eif/init/signer.c). It reads no options from arguments or the environment.

import { EXIT } from '../common/command-line/exit-codes.ts';
import { COMPILED } from './compiled.ts';
import { runImage } from './start.ts';

if (COMPILED === undefined) {
  process.stderr.write('strongroom: cannot start: this is no image; `strongroom eif build` makes one\n');
  process.exit(EXIT.failed);
}
await runImage(COMPILED, process.env);
