// `strongroom release verify`: whether the files of a folder are those that the publisher signed for. A file that the
// statement does not name is refused as one that was altered: it may be what somebody put there. A file that is not
// there is no fault: people download one form of a release.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { command } from '../../common/command-line/program.ts';
import { note, type Printed } from '../../common/command-line/terminal.ts';
import { keyId, open, parsed } from './dsse.ts';
import { ENVELOPE, FileRefused, PROVENANCE, readKey, readWhole, SUMS, sha256OfFile } from './files.ts';

export const verifyCommand = command(
  {
    summary: 'Verify the files of a release: the publisher’s signature, and the digest of each file; offline',
    notes: ['Exit 2 when the signature or a file is refused. Files that are not there are listed, and no fault.'],
    argument: { name: 'FOLDER', meaning: `The files of the release, ${ENVELOPE} among them` },
    flags: {
      key: {
        placeholder: 'FILE',
        required: true,
        meaning: 'The publisher’s Ed25519 public key (PEM), from another place',
      },
    },
    examples: ['strongroom release verify . --key publisher.pem'],
  },

  async ({ values, argument: folder }, terminal: Printed) => {
    const publicKey = readKey(values.key, 'public');
    const opened = open(readWhole(join(folder, ENVELOPE)), publicKey);
    if (!opened.ok) {
      note(terminal, `strongroom: ${ENVELOPE}: ${opened.problem}`);
      return EXIT.refused;
    }
    const subjects = subjectsOf(opened.payload);
    const judged = await judge(folder, subjects, opened.payload);
    for (const { name, says } of judged) terminal.stdout.write(`${says.padEnd(WIDTH)}${name}\n`);
    const bad = judged.filter(({ says }) => says === 'DIFFERENT' || says === 'NOT NAMED').length;
    const good = judged.filter(({ says }) => says === 'OK').length;
    if (bad > 0 || good === 0) {
      const problem = bad > 0 ? `${bad} files are not what was signed for` : 'no file that was signed for is there';
      note(terminal, `strongroom: ${problem}: use nothing of this folder`);
      return EXIT.refused;
    }
    terminal.stdout.write(`${good} files are those that the key ${keyId(publicKey)} signed for\n`);
    return EXIT.ok;
  },
);

type Verdict = 'OK' | 'DIFFERENT' | 'NOT NAMED' | 'not here';
const WIDTH = 11;

async function judge(
  folder: string,
  subjects: ReadonlyMap<string, string>,
  payload: Buffer,
): Promise<readonly { readonly name: string; readonly says: Verdict }[]> {
  const there = readdirSync(folder).filter((name) => name !== ENVELOPE && name !== SUMS);
  const missing = [...subjects.keys()].filter((name) => !there.includes(name));
  const verdictOf = async (name: string): Promise<Verdict> => {
    if (name === PROVENANCE) return readWhole(join(folder, name)).equals(payload) ? 'OK' : 'DIFFERENT';
    const digest = subjects.get(name);
    if (digest === undefined) return 'NOT NAMED';
    return (await sha256OfFile(join(folder, name))) === digest ? 'OK' : 'DIFFERENT';
  };
  const judged = await Promise.all(there.sort().map(async (name) => ({ name, says: await verdictOf(name) })));
  return [...judged, ...missing.map((name) => ({ name, says: 'not here' as const }))];
}

/** Name and SHA-256 of each file. @throws FileRefused when the signed statement is none of a release */
function subjectsOf(payload: Buffer): ReadonlyMap<string, string> {
  const statement = parsed(payload) as { readonly _type?: unknown; readonly subject?: unknown } | null | undefined;
  const subject = statement?._type === 'https://in-toto.io/Statement/v1' ? statement.subject : undefined;
  const entries = (Array.isArray(subject) ? subject : []).map((one): [unknown, unknown] => {
    const { name, digest } = (one ?? {}) as {
      readonly name?: unknown;
      readonly digest?: { readonly sha256?: unknown };
    };
    return [name, digest?.sha256];
  });
  const isWhole = entries.every(
    ([name, sha256]) => typeof name === 'string' && typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256),
  );
  const subjects = new Map(entries as [string, string][]);
  if (isWhole && subjects.size > 0 && subjects.size === entries.length) return subjects;
  throw new FileRefused('what is signed is no in-toto statement of the files of a release');
}
