// Writes test/vectors/verification-v1.json, which is what this prints: `bin/pinned-node` with the name of this file.
// Each case differs from a good one in one way; verification-vectors.test.ts holds our own program against all of them.
// Keys are new each time, so it is made once for a form and kept; a change of the form is a new version with a file of
// its own.

import { cases, evidence, referenceValues } from './vectors/cases.ts';
import './vectors/document-cases.ts';
import './vectors/encoding-cases.ts';
import './vectors/chain-cases.ts';
import './vectors/form-cases.ts';
import './vectors/certificate-cases.ts';
import { createHash } from 'node:crypto';
import { root } from './vectors/evidence.ts';

const comment =
  'Evidence, what it is judged by, and the verdict (docs/specification/evidence.md#vectors). Made by test/operator/attestation/make-verification-vectors.ts.';
const root_sha256 = createHash('sha256').update(root.certificate).digest('hex');
console.log(JSON.stringify({ comment, root_sha256, reference_values: referenceValues, evidence, cases }, null, 1));
