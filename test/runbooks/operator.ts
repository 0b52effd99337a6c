// `strongroom operator …` of a rehearsal with an enclave: as it is, but that it believes documents of the rehearsal's
// emulated module instead of AWS's. argv: SHA-256 of that authority's certificate, and the words of the command.

import { runOperator } from '../../operator/main.ts';

const { env, stdin, stdout, stderr } = process;
const [rootSha256 = '', ...argv] = process.argv.slice(2);
const provider = { name: 'the TEST security module', rootSha256 };
process.exitCode = await runOperator(argv, { env, stdin, stdout, stderr }, provider);
