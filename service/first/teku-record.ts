// Teku keeps a YAML file for each key with the last slot and epochs, and writes it before it signs. That is a minimal
// record, which it exports as such itself: it is handed on as EIP-3076 says it. Alone, because of all clients only
// Teku's record is read where it is.

import { join } from 'node:path';
import { parseStrictYaml } from '../../common/formats/yaml.ts';
import { type Definition, namesIn, RECORD_FILE, readText, recordsOf } from './client-folders.ts';
import { FirstStepFailure } from './failure.ts';

/** @param root of the network, for files that do not say theirs @throws FirstStepFailure that names the file */
export async function* tekuRecord(folder: string, root: string): AsyncGenerator<Uint8Array> {
  const place = recordsOf('teku', folder) ?? folder;
  const keys = namesIn(place).flatMap((name) => (/^[0-9a-f]{96}\.yml$/i.test(name) ? [name.slice(0, -4)] : []));
  const roots = new Set<string>();
  const data = keys.map((key) => {
    const file = join(place, `${key}.yml`);
    const read = parseStrictYaml(readText(file), 'text');
    const record = ('problems' in read ? undefined : read.value) as Definition | undefined;
    const number = (name: string): string | undefined => {
      const text = record?.[name] ?? 'null';
      if (text === 'null' || text === '') return undefined;
      if (/^[0-9]{1,20}$/.test(text)) return text;
      throw notTekus(file);
    };
    if (typeof record !== 'object' || record === null) throw notTekus(file);
    const slot = number('lastSignedBlockSlot');
    const [source, target] = [number('lastSignedAttestationSourceEpoch'), number('lastSignedAttestationTargetEpoch')];
    if ((source === undefined) !== (target === undefined)) throw notTekus(file);
    roots.add(record['genesisValidatorsRoot'] ?? root);
    return {
      pubkey: `0x${key}`,
      signed_blocks: slot === undefined ? [] : [{ slot }],
      signed_attestations: source === undefined ? [] : [{ source_epoch: source, target_epoch: target }],
    };
  });
  const [first = root, ...others] = roots;
  if (others.length > 0) throw new FirstStepFailure(`${place} has records of several networks`);
  const metadata = { interchange_format_version: '5', genesis_validators_root: first };
  yield Buffer.from(JSON.stringify({ metadata, data }));
}

function notTekus(file: string): FirstStepFailure {
  return new FirstStepFailure(`${file} is not the record of a key as Teku keeps it`, [
    `have Teku write it, and add --record ${RECORD_FILE}: teku slashing-protection export --to=${RECORD_FILE}`,
  ]);
}
