// GET /api/v1/eth2/distributed/accounts: the keys of which this signer holds a share
// (specification/signing.md#distributed). Shares sign on the routes of sign.ts and sign-batch.ts; this file is alone,
// because an enclave, which takes no shares, has nothing of it.

import type { FastifyInstance } from 'fastify';
import { accountOf } from '../../api/distributed.ts';
import { SignerError } from '../../api/errors.ts';
import { canSignWith } from '../../auth/evaluate.ts';
import type { KeyStore } from '../../keys/store.ts';
import { callerOf } from '../context.ts';
import { refusalError, sendJson } from '../replies.ts';
import { OTHER_FORM } from './sign.ts';

const ACCOUNTS = '/api/v1/eth2/distributed/accounts';
const ACCESS = { kind: 'scope', scope: 'public_keys', needsSigning: true } as const;

export function mountAccounts(app: FastifyInstance, keys: Pick<KeyStore, 'publicKeys' | 'shareOf'>): void {
  const list = { access: { ...ACCESS, namesKey: false, listsKeys: true } } as const;
  app.get(ACCOUNTS, { config: list }, async (request, reply) => {
    const { access } = callerOf(request);
    const shares = keys.publicKeys().flatMap((publicKey) => keys.shareOf(publicKey) ?? []);
    const visible = shares.filter(({ compositePublicKey }) => canSignWith(access, compositePublicKey));
    return sendJson(reply, 200, visible.map(accountOf));
  });
  const one = { access: { ...ACCESS, namesKey: true } } as const;
  app.get(`${ACCOUNTS}/:identifier`, { config: one }, async (request, reply) => {
    const { publicKey = '' } = request.context;
    // As if it were not here: the list does not have it for this caller either.
    if (!canSignWith(callerOf(request).access, publicKey)) throw new SignerError('unknown_key');
    const share = keys.shareOf(publicKey);
    if (share === undefined) throw refusalError(OTHER_FORM.share);
    return sendJson(reply, 200, accountOf(share));
  });
}
