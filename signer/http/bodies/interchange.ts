// EIP-3076 files inside the JSON of a request (the key routes): in memory as a whole.

import { SignerError } from '../../api/errors.ts';
import { readInterchange, writeInterchange } from '../../slashing/interchange/file.ts';
import { InterchangeError } from '../../slashing/interchange/piece-parser.ts';
import type { SlashingBackend, ValidatorHistory } from '../../slashing/types.ts';

interface InterchangeParts {
  readonly backend: Pick<SlashingBackend, 'importHistories' | 'exportHistories'>;
  /** `0x` and 64 hex digits. */
  readonly genesisValidatorsRoot: string;
}

/** @throws SignerError `malformed_body`, also for another network; `denied`; slashing_*. Nothing is merged */
export async function mergeInterchangeText(
  text: string,
  allows: (publicKey: string) => boolean,
  { backend, genesisValidatorsRoot }: InterchangeParts,
): Promise<void> {
  const source = (async function* () {
    yield Buffer.from(text);
  })();
  async function* allowed(): AsyncGenerator<ValidatorHistory> {
    for await (const history of readInterchange(source, genesisValidatorsRoot)) {
      if (!allows(history.publicKey)) throw new SignerError('denied');
      yield history;
    }
  }
  try {
    await backend.importHistories(allowed());
  } catch (error) {
    if (!(error instanceof InterchangeError)) throw error;
    const hint = `slashing_protection: ${error.message}; nothing was imported`;
    throw new SignerError('malformed_body', { hint, cause: error });
  }
}

export async function exportInterchangeText(
  publicKeys: readonly string[],
  { backend, genesisValidatorsRoot }: InterchangeParts,
): Promise<{ readonly file: string; readonly recorded: ReadonlySet<string> }> {
  const recorded = new Set<string>();
  async function* seen(): AsyncGenerator<ValidatorHistory> {
    for await (const history of backend.exportHistories(publicKeys)) {
      recorded.add(history.publicKey);
      yield history;
    }
  }
  const pieces: string[] = [];
  for await (const piece of writeInterchange(seen(), genesisValidatorsRoot)) pieces.push(piece);
  return { file: pieces.join(''), recorded };
}
