// `strongroom operator …` as it is, but that it believes documents of the guest's NSM instead of AWS's. The authority
// is the one that the NSM said on the console, which no flag or variable of the program itself could name.

import { readFileSync } from 'node:fs';
import { runOperator } from '../../../../operator/main.ts';
import { GUEST } from '../settings.ts';

const { env, stdin, stdout, stderr } = process;
const rootSha256 = readFileSync(GUEST.root, 'utf8').trim();
const provider = { name: 'the TEST security module', rootSha256 };
process.exitCode = await runOperator(process.argv.slice(2), { env, stdin, stdout, stderr }, provider);
