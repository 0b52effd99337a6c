// The attestation route as /api/openapi.json describes it.

import { CLIENT_NONCE_BYTES, DOCUMENT_MEDIA_TYPE, EXPORTER_LABEL } from '../../api/attestation.ts';
import { responses } from '../openapi.ts';

const { min, max } = CLIENT_NONCE_BYTES;

export const attestationRouteSchema = {
  summary: 'A fresh attestation document for this connection; on the RA-TLS listener only',
  description:
    'The nonce of the document is SHA-256(nonce || TLS exporter of 32 bytes under the label ' +
    `"${EXPORTER_LABEL}", without a context); its user_data binds the key of the certificate that this ` +
    'connection was served with. Two are made at a time, in turns by address; others wait, at most 10 s, then the answer is 503 with ' +
    'Retry-After. A connection gets four.',
  tags: ['attestation'],
  querystring: {
    type: 'object',
    required: ['nonce'],
    properties: {
      nonce: {
        type: 'string',
        pattern: `^([0-9a-fA-F]{2}){${min},${max}}$`,
        description: `Chosen by the client, ${min} to ${max} bytes, hex`,
      },
    },
  },
  response: responses(
    { [DOCUMENT_MEDIA_TYPE]: { type: 'string', format: 'binary', description: 'COSE_Sign1, as the NSM made it' } },
    [400, 404, 503],
  ),
};
