// A page of the keys of one replica, on the screen of `operator top`. Only the page that is looked at is asked for,
// with the token of the replica: without the scope chamber_keys_list the refusal is what is shown.

import type { Paint } from '../../common/command-line/paint.ts';
import { renderTable } from '../../common/command-line/table.ts';
import { printable } from '../../common/command-line/text.ts';
import { wrap } from '../../common/command-line/wrap.ts';
import { type KeyListAnswer, keyListSchema } from '../../signer/api/key-answers.ts';
import { shortKey } from '../commands/keys.ts';
import { CommandFailure } from '../exit.ts';
import { KEYS_PATH } from '../key-batches.ts';
import type { Replica } from './sample.ts';
import type { PressedKey } from './screen.ts';

interface PageFrame {
  readonly columns: number;
  readonly rows: number;
  readonly paint: Paint;
}

const FIXED_LINES = 4;

export class KeysPage {
  readonly #replicas: readonly Replica[];
  #replica = 0;
  #cursors: (string | null)[] = [null];
  #found: KeyListAnswer | CommandFailure | undefined;
  #isBusy = false;

  constructor(replicas: readonly Replica[]) {
    this.#replicas = replicas;
  }

  async act(key: PressedKey | undefined, rows: number): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      if (this.#turn(key)) await this.#look(Math.max(1, rows - FIXED_LINES));
    } finally {
      this.#isBusy = false;
    }
  }

  render({ columns, rows, paint }: PageFrame): string[] {
    const replica = this.#replicas[this.#replica];
    const more = this.#replicas.length > 1 ? ', r replica' : '';
    const title = `keys of ${replica?.name ?? ''}, page ${this.#cursors.length}: n next, p back${more}, k fleet, q ends`;
    const shown = title.length <= columns ? title : `${title.slice(0, columns - 1)}…`;
    return [shown, '', ...this.#body(columns, paint)].slice(0, rows);
  }

  #body(columns: number, paint: Paint): string[] {
    const found = this.#found;
    if (found === undefined) return ['…'];
    if (found instanceof CommandFailure)
      return [
        ...wrap(printable(found.message), columns).map((line) => paint(line, 'bad')),
        ...wrap(printable(found.advice ?? ''), columns),
      ];
    if (found.keys.length === 0) return ['no keys'];
    const cells = found.keys.map(({ pubkey, sources, status, loaded, has_backup, created_at }) => [
      shortKey(pubkey),
      sources.join(' and '),
      status,
      loaded ? 'yes' : 'NO',
      has_backup ? 'yes' : '-',
      created_at.slice(0, 10),
    ]);
    const table = renderTable(['KEY', 'SOURCE', 'STATUS', 'LOADED', 'BACKUP', 'SINCE'], cells, columns);
    return [...table.trimEnd().split('\n'), ...(found.next_cursor === null ? ['', 'no more keys'] : [])];
  }

  #turn(key: PressedKey | undefined): boolean {
    if (key === 'next') {
      if (!(this.#found !== undefined && 'next_cursor' in this.#found) || this.#found.next_cursor === null)
        return false;
      this.#cursors.push(this.#found.next_cursor);
    } else if (key === 'back') {
      if (this.#cursors.length === 1) return false;
      this.#cursors.pop();
    } else if (key === 'replica') {
      this.#replica = (this.#replica + 1) % this.#replicas.length;
      this.#cursors = [null];
      this.#found = undefined;
    }
    return true;
  }

  async #look(count: number): Promise<void> {
    const cursor = this.#cursors.at(-1) ?? null;
    const query = new URLSearchParams({ limit: String(count), ...(cursor === null ? {} : { cursor }) });
    try {
      const client = this.#replicas[this.#replica]?.client;
      this.#found = (await client?.request({ method: 'GET', path: `${KEYS_PATH}?${query}` }, keyListSchema))?.value;
    } catch (error) {
      if (!(error instanceof CommandFailure)) throw error;
      this.#found = error;
    }
  }
}
