// Why no answer came, in words, with what to do. Certificate faults are told apart, because the remedy differs and none
// of them is "skip the check".

import { EXIT } from '../common/command-line/exit-codes.ts';
import { bounded } from '../common/command-line/text.ts';
import { errorCode } from '../common/formats/error-code.ts';
import type { Peer } from './connect.ts';
import { CommandFailure, ForeignAnswer } from './exit.ts';

const MAX_NAMES_CHARACTERS = 300;

interface Attempt {
  readonly peer: Peer;
  readonly timeoutSeconds: number;
  readonly timedOut: boolean;
  /** The request changes something and may have arrived. */
  readonly maybeDone: boolean;
  /** Where a signer answers without TLS, when the default address refuses the connection. */
  readonly plainSigner?: string | undefined;
}

interface Fault {
  readonly problem: string;
  readonly advice?: string;
  readonly isForeign?: true;
}

const TRUST_ADVICE =
  'name the certificate authority of the signer, or its self-signed certificate, with --tls-ca FILE; ' +
  'check that it is the right one. An enclave is known by its measurements instead: --pcrs FILE';
const UNTRUSTED: Fault = { problem: 'its certificate is not signed by a trusted authority', advice: TRUST_ADVICE };

const ROUTE_ADVICE = 'check the address, and the firewalls and routes between this machine and the signer';
const CLOSED: Fault = {
  problem: 'the connection was closed before the answer',
  advice: 'look at the log of the signer; does the port belong to it, or to a proxy before it?',
};

const REFUSED: Fault = { problem: 'the connection is refused', advice: 'is the signer running?' };

const FAULTS: Readonly<Record<string, Fault>> = {
  ECONNREFUSED: REFUSED,
  ENOTFOUND: { problem: 'the host name is not known', advice: 'correct the host of the URL' },
  EAI_AGAIN: {
    problem: 'the host name cannot be resolved now',
    advice: 'does the name server of this machine answer?',
  },
  EHOSTUNREACH: { problem: 'there is no route to the host', advice: ROUTE_ADVICE },
  ENETUNREACH: { problem: 'there is no route to the network', advice: ROUTE_ADVICE },
  ETIMEDOUT: { problem: 'the connection timed out', advice: ROUTE_ADVICE },
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  CERT_HAS_EXPIRED: { problem: 'its certificate has expired', advice: "renew the signer's certificate" },
  CERT_NOT_YET_VALID: { problem: 'its certificate is not valid yet', advice: 'check the clocks of both machines' },
  DEPTH_ZERO_SELF_SIGNED_CERT: { problem: 'its certificate is self-signed and not trusted', advice: TRUST_ADVICE },
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  ERR_SSL_WRONG_VERSION_NUMBER: {
    problem: 'it does not speak TLS at this port',
    advice: 'check the port; a listener without TLS needs an http: URL and --allow-plaintext-signer',
  },
  ERR_SSL_PACKET_LENGTH_TOO_LONG: { problem: 'it does not speak TLS at this port', advice: 'check the port' },
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: {
    problem: 'it does not speak the version of TLS that is needed',
    advice: 'an enclave is attested over TLS 1.3; does the URL lead to its RA-TLS listener?',
  },
  HPE_INVALID_CONSTANT: {
    problem: 'what answers is no HTTP server',
    advice: 'check the port; a listener with TLS needs an https: URL',
    isForeign: true,
  },
};

export function connectionFailure(error: unknown, attempt: Attempt): CommandFailure {
  const { problem, advice, isForeign }: Fault = attempt.timedOut
    ? { problem: `nothing came for ${attempt.timeoutSeconds} s`, advice: 'see --timeout-seconds' }
    : faultOf(error, attempt);
  const doubt = 'the request may have been carried out: look before repeating it';
  const Failure = isForeign === true ? ForeignAnswer : CommandFailure;
  return new Failure(
    EXIT.refused,
    `no answer from ${attempt.peer.url.origin}: ${problem}`,
    attempt.maybeDone ? doubt : advice,
  );
}

export function isReset(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE'].includes(codeOf(error));
}

/** No program listens there. */
export function isRefused(error: unknown): boolean {
  return codeOf(error) === 'ECONNREFUSED';
}

function faultOf(error: unknown, { peer, plainSigner }: Attempt): Fault {
  const code = codeOf(error);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return wrongName(error, peer);
  const known = Object.hasOwn(FAULTS, code) ? FAULTS[code] : undefined;
  if (plainSigner !== undefined) {
    const flags = `--signer-url ${plainSigner} --allow-plaintext-signer`;
    return { ...REFUSED, advice: `a signer answers without TLS at ${plainSigner}: to use it, add ${flags}` };
  }
  if (code === 'ECONNREFUSED' && peer.url.protocol === 'https:')
    return { ...REFUSED, advice: 'is the signer running, and its TLS listener on?' };
  if (known !== undefined) return known;
  const message = error instanceof Error ? error.message : String(error);
  return { problem: bounded(code === '' ? message : `${message} (${code})`, MAX_NAMES_CHARACTERS) };
}

function wrongName(error: unknown, { url, serverName }: Peer): Fault {
  const cert = error instanceof Error && 'cert' in error ? (error.cert as { subjectaltname?: string }) : undefined;
  const names = bounded(cert?.subjectaltname ?? 'no name', MAX_NAMES_CHARACTERS);
  return {
    problem: `its certificate is for ${names}, not for ${serverName ?? url.hostname}`,
    advice: 'use the name in the certificate in the URL, or give it with --tls-server-name if that signer is meant',
  };
}

function codeOf(error: unknown): string {
  return errorCode(error) ?? '';
}
