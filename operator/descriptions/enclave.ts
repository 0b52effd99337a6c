// What the commands for an enclave say of themselves: verify it, and serve validator clients through it.

import { JSON_OUTPUT } from '../../command-line/json-output.ts';
import { localDescription, remoteDescription } from '../command.ts';
import { COMMON_FLAGS, DEFAULT_MAX_AGE_SECONDS, DEFAULT_TIMEOUT_SECONDS } from '../common-flags.ts';

/** Where validator clients look for a signer. */
export const DEFAULT_LISTEN = '127.0.0.1:9000';
export const CONNECTIONS = { default: 32, max: 512 } as const;
export const WAITING = { default: 256, max: 4096 } as const;

export const verify = localDescription({
  summary: 'Verify attestation evidence of an enclave and report every step',
  flags: {
    pcrs: { placeholder: 'FILE', meaning: 'Reference values: pcrs.json of the image' },
    pcr: { placeholder: 'N=HEX', meaning: 'One reference value; repeat for others', repeatable: true },
    'any-configuration': COMMON_FLAGS['any-configuration'],
    at: { placeholder: 'TIME', meaning: 'Judge a file as of this time, RFC 3339; now when not given' },
    nonce: { placeholder: 'HEX', meaning: 'The nonce that the document in a file has to carry' },
    'max-age': {
      placeholder: 'SECONDS',
      meaning: `The oldest document accepted; ${DEFAULT_MAX_AGE_SECONDS} when not given`,
    },
    ...JSON_OUTPUT,
    report: {
      placeholder: 'FILE',
      isOutputFile: true,
      meaning: 'Write the report as a page too, to keep and to print (HTML)',
    },
    force: { meaning: 'Replace the file of --report' },
    'timeout-seconds': {
      placeholder: 'SECONDS',
      meaning: `Give up on a URL after so long; ${DEFAULT_TIMEOUT_SECONDS}`,
    },
  },
  argument: {
    name: 'EVIDENCE',
    meaning: 'A file (a document, or a PEM certificate with one), - (stdin), or an https: URL',
  },
  examples: [
    'verify https://signer.example:9443 --pcrs pcrs.json --pcr 16=4b8d…',
    'verify document.bin --pcrs pcrs.json --at 2026-01-03T20:41:07Z --json',
  ],
});

export const tunnel = remoteDescription({
  summary: 'Serve validator clients here, over attested connections',
  flags: {
    listen: { placeholder: 'HOST:PORT', meaning: `Default ${DEFAULT_LISTEN}; who reaches it has all the token allows` },
    'unsafe-listen-publicly': { meaning: 'Permit an address that other machines can reach' },
    'max-connections': { placeholder: 'COUNT', meaning: `To the enclave; ${CONNECTIONS.default} when not given` },
    'max-waiting': { placeholder: 'COUNT', meaning: `Requests that wait for one; ${WAITING.default} when not given` },
  },
  examples: [
    'tunnel --signer-url https://enclave:9443 --pcrs pcrs.json --token @token',
    'tunnel --profile enclave --listen 127.0.0.1:9100',
  ],
});
