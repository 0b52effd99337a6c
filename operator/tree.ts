// The command tree, and finding a command in it by the words of the command line. A command's description is here at
// once; what it does is loaded when it runs, so that help and completion are quick.

import { nearest } from '../command-line/nearest.ts';
import { bounded } from '../command-line/text.ts';
import { type Command, type Group, localCommand, remoteCommand } from './command.ts';
import * as authorization from './descriptions/authorization.ts';
import { tunnel, verify } from './descriptions/enclave.ts';
import * as keys from './descriptions/keys.ts';
import { doctor, recover, seal, status, top } from './descriptions/replicas.ts';
import { slashingExport, slashingImport } from './descriptions/slashing.ts';
import { UsageFailure } from './exit.ts';
import { PROGRAM } from './walk.ts';

const MAX_QUOTED_CHARACTERS = 60;

const POLICIES: Group = {
  kind: 'group',
  summary: 'Policies: what tokens may do',
  commands: {
    create: remoteCommand(
      authorization.policyCreate,
      async () => (await import('./commands/policies.ts')).createPolicy,
    ),
    list: remoteCommand(authorization.policyList, async () => (await import('./commands/policies.ts')).listPolicies),
    get: remoteCommand(authorization.policyGet, async () => (await import('./commands/policies.ts')).showPolicy),
    update: remoteCommand(
      authorization.policyUpdate,
      async () => (await import('./commands/policies.ts')).updatePolicy,
    ),
    delete: remoteCommand(
      authorization.policyDelete,
      async () => (await import('./commands/policies.ts')).deletePolicy,
    ),
  },
};

const TOKENS: Group = {
  kind: 'group',
  summary: 'Tokens: who may do it',
  commands: {
    create: remoteCommand(authorization.tokenCreate, async () => (await import('./commands/tokens.ts')).createToken),
    list: remoteCommand(authorization.tokenList, async () => (await import('./commands/tokens.ts')).listTokens),
    lookup: remoteCommand(authorization.tokenLookup, async () => (await import('./commands/tokens.ts')).showToken),
    revoke: remoteCommand(authorization.tokenRevoke, async () => (await import('./commands/tokens.ts')).revokeToken),
  },
};

const KEYS: Group = {
  kind: 'group',
  summary: 'Validator keys',
  commands: {
    list: remoteCommand(keys.keysList, async () => (await import('./commands/keys.ts')).listKeys),
    import: remoteCommand(keys.keysImport, async () => (await import('./commands/keys-import.ts')).importKeystores),
    generate: remoteCommand(keys.keysGenerate, async () => (await import('./commands/keys-generate.ts')).generateKeys),
    'deposit-data': remoteCommand(
      keys.keysDepositData,
      async () => (await import('./commands/keys-generate.ts')).makeDepositData,
    ),
    activate: remoteCommand(keys.keysActivate, async () => (await import('./commands/keys.ts')).activateKeys),
    deactivate: remoteCommand(keys.keysDeactivate, async () => (await import('./commands/keys.ts')).deactivateKeys),
    delete: remoteCommand(keys.keysDelete, async () => (await import('./commands/keys.ts')).deleteKeys),
  },
};

const SLASHING: Group = {
  kind: 'group',
  summary: 'Slashing protection records, as EIP-3076 files',
  commands: {
    export: remoteCommand(slashingExport, async () => (await import('./commands/slashing.ts')).exportRecords),
    import: remoteCommand(slashingImport, async () => (await import('./commands/slashing.ts')).importRecords),
  },
};

export const TREE: Group = {
  kind: 'group',
  summary: 'Look after a running signer',
  commands: {
    status: remoteCommand(status, async () => (await import('./commands/status.ts')).showStatus),
    top: localCommand(top, async () => (await import('./commands/top.ts')).watchReplicas),
    seal: remoteCommand(seal, async () => (await import('./commands/seal.ts')).sealFleet),
    recover: remoteCommand(recover, async () => (await import('./commands/recover.ts')).recoverFleet),
    auth: { kind: 'group', summary: 'Who may do what', commands: { policy: POLICIES, token: TOKENS } },
    keys: KEYS,
    slashing: SLASHING,
    verify: localCommand(verify, async () => (await import('./commands/verify.ts')).verifyEvidence),
    doctor: localCommand(doctor, async () => (await import('./commands/doctor.ts')).findTrouble),
    tunnel: remoteCommand(tunnel, async () => (await import('./commands/tunnel.ts')).serveTunnel),
  },
};

export interface Found<Of = Group | Command> {
  /** The words that lead to it, after `strongroom operator`. */
  readonly path: readonly string[];
  readonly node: Of;
  /** The arguments after them. */
  readonly rest: readonly string[];
}

/** Follow the leading words as far as they are words of the tree; flags come after them. */
export function followWords(argv: readonly string[]): Found {
  let node: Group | Command = TREE;
  const path: string[] = [];
  for (const word of argv) {
    const next: Group | Command | undefined =
      node.kind === 'group' && Object.hasOwn(node.commands, word) ? node.commands[word] : undefined;
    if (next === undefined) break;
    node = next;
    path.push(word);
  }
  return { path, node, rest: argv.slice(path.length) };
}

/** @throws UsageFailure: no command, a word that is none, or a flag before it */
export function findCommand(argv: readonly string[]): Found<Command> {
  const { path, node, rest } = followWords(argv);
  const [word] = rest;
  if (node.kind !== 'group') return { path, node, rest };
  const known = Object.keys(node.commands);
  const program = [PROGRAM, ...path].join(' ');
  if (word === undefined || word.startsWith('-')) {
    const flagsFirst = word === undefined ? '' : ', and its flags come after it';
    throw new UsageFailure(`say which command of ${program} to run${flagsFirst}`, `there are: ${known.join(', ')}`);
  }
  const near = nearest(word, known);
  throw new UsageFailure(
    `there is no command ${program} ${bounded(word, MAX_QUOTED_CHARACTERS)}`,
    near === undefined ? `there are: ${known.join(', ')}` : `did you mean ${near}?`,
  );
}
