// The rules and warnings of an ordinary host: those of every signer and of an enclave, whose configuration
// `server --check` judges too, and those on what an image does not have: SQLite and no protection, key files, TLS from
// files, client certificates, listeners on ports.

import { isAbsolute } from 'node:path';
import type { Config } from '../../signer/config/options.ts';
import { CUSTODY_RULES } from '../../signer/config/rules/custody.ts';
import { ENCLAVE_RULES } from '../../signer/config/rules/enclave.ts';
import { LISTENER_RULES } from '../../signer/config/rules/listeners.ts';
import { NETWORK_RULES } from '../../signer/config/rules/network.ts';
import { type ConfigRule, repeated, when } from '../../signer/config/rules/rule.ts';
import { SIGNING_RULES } from '../../signer/config/rules/rules.ts';
import { STATIC_AUTH_RULES } from '../../signer/config/rules/static-auth.ts';
import { TABLE_RULES } from '../../signer/config/rules/tables.ts';
import { useless, WARNINGS, type WarningRule } from '../../signer/config/warnings.ts';
import { isNot, type UselessOption } from '../../signer/config/without-effect.ts';

// Rules on client certificates: which listener can ask for them, and that no option names a certificate that no
// listener looks at.

const ABOUT = ['tls.known_clients', 'tls.client_ca', 'tls.client_auth'] as const;

const CLIENT_CERTIFICATE_RULES: readonly ConfigRule[] = [
  {
    says: '`tls.known_clients`, `tls.client_ca` and `tls.client_auth: required` need `tls.mode: file`: no other listener asks for client certificates.',
    // That of an enclave's listener is among its own rules.
    broken: ({ tls }) =>
      tls.mode !== 'disabled'
        ? []
        : ABOUT.filter((at) => isUsed(tls, at)).map((at) => ({
            at,
            problem: 'is set, and no TLS listener asks for it',
            remedy: 'set tls.mode: file, or remove it',
          })),
  },
  {
    says: '`tls.known_clients` is for stateless authorization: with `signer_state` credentials and policies are in the state table, which has no certificates.',
    broken: ({ tls }, { isSet }) =>
      when(tls.known_clients.length > 0 && isSet('signer_state'), {
        at: 'tls.known_clients',
        problem: 'is set together with signer_state, whose policies are for tokens of the state table alone',
        remedy: 'give these clients tokens (operator auth token create), or use static_auth without signer_state',
      }),
  },
  {
    says: '`tls.client_ca` and a `subject` in `tls.known_clients` need each other: without the CA anybody makes a certificate of that subject, and without a subject the CA vouches for nobody.',
    broken: ({ tls: { client_ca, known_clients } }) => [
      ...known_clients.flatMap(({ subject }, index) =>
        when(subject !== undefined && client_ca === undefined, {
          at: 'tls.known_clients',
          within: [index, 'subject'],
          problem: 'is set, and there is no tls.client_ca that could vouch for it',
          remedy: 'set tls.client_ca, or pin the client with spki_sha256 or certificate_sha256',
        }),
      ),
      ...when(client_ca !== undefined && known_clients.every(({ subject }) => subject === undefined), {
        at: 'tls.client_ca',
        problem: 'is set, and no client in tls.known_clients is known by its subject',
        remedy: 'name the clients by subject, with their policies, or remove it',
      }),
    ],
  },
  {
    says: '`tls.client_auth: required` needs `tls.known_clients`: nobody could connect.',
    broken: ({ tls: { client_auth, known_clients } }) =>
      when(client_auth === 'required' && known_clients.length === 0, {
        at: 'tls.client_auth',
        problem: 'is required, and there are no tls.known_clients: nobody could connect',
        remedy: 'list the clients in tls.known_clients',
      }),
  },
  {
    says: 'Clients in `tls.known_clients` have different names, and each is known by something of its own.',
    broken: ({ tls: { known_clients } }) => [
      ...repeated(known_clients.map(({ name }) => name)).map((index) => ({
        at: 'tls.known_clients' as const,
        within: [index, 'name'],
        problem: 'is the name of an earlier client: audit lines could not tell them apart',
        remedy: 'give each client a name of its own',
      })),
      ...repeated(known_clients.map(knownBy)).map((index) => ({
        at: 'tls.known_clients' as const,
        within: [index],
        problem: 'is known by the same as an earlier client: which policies apply would be a matter of order',
        remedy: 'remove one of them',
      })),
    ],
  },
  {
    says: 'Clients in `tls.known_clients` name policies that `static_auth.policies` has.',
    broken: ({ tls, static_auth }) => {
      const known = new Set(static_auth.policies.map(({ name }) => name));
      return tls.known_clients.flatMap(({ policies }, client) =>
        policies.flatMap((name, index) =>
          when(!known.has(name), {
            at: 'tls.known_clients',
            within: [client, 'policies', index],
            problem: 'names a policy that static_auth.policies does not have',
            remedy: 'define the policy, or correct the name',
          }),
        ),
      );
    },
  },
];

function isUsed({ known_clients, client_ca, client_auth }: Config['tls'], at: (typeof ABOUT)[number]): boolean {
  if (at === 'tls.known_clients') return known_clients.length > 0;
  return at === 'tls.client_ca' ? client_ca !== undefined : client_auth === 'required';
}

function knownBy({ subject, spki_sha256, certificate_sha256, file }: Config['tls']['known_clients'][number]): string {
  return JSON.stringify([subject, spki_sha256, certificate_sha256, file]);
}

const tlsIsOff = ({ tls }: Config): boolean => tls.mode === 'disabled';
const TLS_IS_OFF = 'tls.mode is disabled. Set tls.mode: file, or remove it';

const HOST_RULES: readonly ConfigRule[] = [
  {
    startupFailure: 2,
    says: '`anti_slashing.backend: noop` needs the flag `--allow-unsafe-noop-anti-slashing`.',
    broken: ({ anti_slashing }, { allowUnsafeNoopAntiSlashing }) =>
      when(anti_slashing.backend === 'noop' && !allowUnsafeNoopAntiSlashing, {
        at: 'anti_slashing.backend',
        problem: 'is noop: nothing would keep the keys from being slashed',
        remedy: 'choose sqlite, postgres or dynamodb; --allow-unsafe-noop-anti-slashing is for tests',
      }),
  },
  {
    says: '`key_sources.filesystem.keystores.path` needs one of `passwords_path` and `password_file`, which do nothing without it.',
    broken: ({ key_sources: { filesystem } }) => {
      const { path, passwords_path, password_file } = filesystem.keystores;
      const at = 'key_sources.filesystem.keystores';
      const given = [passwords_path, password_file].filter((option) => option !== undefined).length;
      if (path === undefined) {
        return when(given > 0, {
          at,
          problem: 'says where passwords are, and no directory of keystores',
          remedy: `set ${at}.path`,
        });
      }
      return when(given !== 1, {
        at,
        problem: given === 0 ? 'has no passwords' : 'has a directory of passwords and one file for all',
        remedy: 'set one of passwords_path (NAME.txt for NAME.json) and password_file (one for all)',
      });
    },
  },
  {
    says: '`key_sources.memory.persist_dir` and `persist_secret` are set together, or neither.',
    broken: ({ key_sources: { memory } }) =>
      when((memory.persist_dir === undefined) !== (memory.persist_secret === undefined), {
        at: `key_sources.memory.${memory.persist_dir === undefined ? 'persist_dir' : 'persist_secret'}`,
        problem: 'is missing: imported keystores are kept in a directory, with their passwords under a secret',
        remedy: 'set both; the secret as env:VAR_NAME or file:/PATH',
      }),
  },
  {
    startupFailure: 5,
    says: '`tls.mode: ratls` needs `tee.platform: nitro`.',
    broken: ({ tls, tee }) =>
      when(tls.mode === 'ratls' && tee.platform !== 'nitro', {
        at: 'tls.mode',
        problem: 'is ratls, and there is no TEE to attest the certificate',
        remedy: 'set tee.platform: nitro, or use tls.mode: file',
      }),
  },
  {
    says: '`tls.mode: file` needs `tls.file.cert_path` and `tls.file.key_path`.',
    broken: ({ tls }) =>
      (['cert_path', 'key_path'] as const).flatMap((member) =>
        when(tls.mode === 'file' && tls.file[member] === undefined, {
          at: `tls.file.${member}`,
          problem: 'is missing, and tls.mode is file',
          remedy: `set tls.file.${member}`,
        }),
      ),
  },
];

export const SERVICE_RULES: readonly ConfigRule[] = [
  ...STATIC_AUTH_RULES,
  ...CLIENT_CERTIFICATE_RULES,
  ...NETWORK_RULES,
  ...HOST_RULES,
  ...SIGNING_RULES,
  ...CUSTODY_RULES,
  ...LISTENER_RULES,
  ...ENCLAVE_RULES,
  ...TABLE_RULES,
];

const USELESS_ON_HOSTS: readonly UselessOption[] = [
  { at: 'anti_slashing.path', because: 'it is for the backend sqlite. Remove it', inThis: isNot('sqlite') },
  { at: 'tls.listen_address', because: TLS_IS_OFF, inThis: tlsIsOff },
  { at: 'tls.listen_port', because: TLS_IS_OFF, inThis: tlsIsOff },
  { at: 'tls.max_connections', because: TLS_IS_OFF, inThis: tlsIsOff },
  {
    at: 'tls.file',
    because: 'tls.mode is not file. Set tls.mode: file, or remove it',
    inThis: ({ tls }) => tls.mode !== 'file',
  },
  { at: 'tls.ratls', because: 'tls.mode is not ratls. Remove it', inThis: ({ tls }) => tls.mode !== 'ratls' },
  {
    at: 'tee.nitro.egress',
    because: 'tee.platform is off, and this machine reaches what it can reach. Remove it',
    inThis: ({ tee }) => tee.platform !== 'nitro',
  },
  {
    at: 'parent_proxy',
    because: 'it is for the parent of an enclave, and tee.platform is off. Remove it',
    inThis: ({ tee }) => tee.platform !== 'nitro',
  },
];

export const SERVICE_WARNINGS: readonly WarningRule[] = [
  ...WARNINGS,
  {
    at: 'server.listen_address',
    says: 'offers plain HTTP beyond this machine: whoever sees the network sees tokens. Listen on 127.0.0.1, and use tls.mode for others',
    applies: outsideEnclave(({ server }) => !isLoopback(server.listen_address)),
  },
  {
    at: 'metrics.listen_address',
    says: 'offers metrics, which need no token, beyond this machine. Listen on 127.0.0.1, or keep the port behind a firewall',
    applies: outsideEnclave(({ metrics }) => !isLoopback(metrics.listen_address)),
  },
  {
    at: 'anti_slashing.path',
    says: 'is relative: a start from another folder begins with a new database, which knows nothing of what was signed. Write it from the root',
    applies: ({ anti_slashing: { backend, path } }) => backend === 'sqlite' && !isAbsolute(path),
  },
  {
    at: 'anti_slashing.backend',
    says:
      'is sqlite, a store for one signer, and the keys are in a table that several signers can load: the others sign nothing ' +
      'while one does. For a fleet choose postgres or dynamodb',
    applies: ({ anti_slashing: { backend }, key_sources }) =>
      backend === 'sqlite' && key_sources.dynamodb.table !== undefined,
  },
  ...USELESS_ON_HOSTS.map(useless),
];

/** In an enclave a listener is a vsock port, and its parent decides who reaches it. */
function outsideEnclave(applies: (config: Config) => boolean): WarningRule['applies'] {
  return (config) => config.tee.platform !== 'nitro' && applies(config);
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}
