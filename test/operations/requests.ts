// Requests to sign as clients send them, parsed, and mainnet for them.

import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { ParsedSignRequest, SignRequest } from '../../signer/operations/sign-request.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';

export const MAINNET = publicNetwork('mainnet');

export function hexBytes(text: string): Uint8Array {
  return Buffer.from(text.replace(/^0x/, ''), 'hex');
}

export function parse(body: object | string): ParsedSignRequest {
  return parseSignRequest(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));
}

export function requestOf(body: object | string): SignRequest {
  const parsed = parse(body);
  if (parsed.kind === 'refused') throw new Error(`${parsed.reason}: ${parsed.hint}`);
  return parsed.request;
}
