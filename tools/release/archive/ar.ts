// Archives in the common format of ar(5), as Debian's packages are (deb(5)): a line, then each member behind a header
// of 60 bytes, at even places.

import { BuildError } from '../../../eif/inputs.ts';

export interface Member {
  readonly name: string;
  readonly data: Buffer;
}

const MAGIC = '!<arch>\n';
const MAX_NAME_BYTES = 16;
const MODE = 0o100644;

export function writeAr(members: readonly Member[], timeSeconds: number): Buffer {
  const parts = members.flatMap(({ name, data }) => {
    if (name.length > MAX_NAME_BYTES) throw new BuildError(`${name} is too long a name for a member of a package`);
    const fields: readonly (readonly [string | number, number])[] = [
      [name, MAX_NAME_BYTES],
      [timeSeconds, 12],
      [0, 6], // owner
      [0, 6], // group
      [MODE.toString(8), 8],
      [data.length, 10],
    ];
    const header = `${fields.map(([value, width]) => String(value).padEnd(width)).join('')}\`\n`;
    return [Buffer.from(header, 'latin1'), data, Buffer.from(data.length % 2 === 0 ? '' : '\n')];
  });
  return Buffer.concat([Buffer.from(MAGIC), ...parts]);
}
