// How a signature is answered: JSON or bare hex, by the request's Accept (specification/signing.md#answers). Clients
// differ in what they can read and break on the other form, so this is exact: no quality values, nothing but these two
// forms.

import { encodeHex } from '../../formats/hex.ts';

export type AnswerFormat = 'json' | 'text';

export interface SignatureAnswer {
  readonly contentType: 'application/json' | 'text/plain; charset=utf-8';
  readonly body: string;
}

/** JSON when Accept contains `application/json` or `*\/*`; bare hex otherwise, also without an Accept. */
export function answerFormat(accept: string | undefined): AnswerFormat {
  const types = accept?.toLowerCase() ?? '';
  return types.includes('application/json') || types.includes('*/*') ? 'json' : 'text';
}

export function signatureAnswer(signature: Uint8Array, format: AnswerFormat): SignatureAnswer {
  const hex = encodeHex(signature);
  return format === 'json'
    ? { contentType: 'application/json', body: `{"signature":"${hex}"}` }
    : { contentType: 'text/plain; charset=utf-8', body: hex };
}
