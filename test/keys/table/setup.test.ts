// `strongroom setup tables` makes a key table that a signer can use.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { startCustody } from '../../../rehearsal/custody.ts';
import { dynamoDBClientOptions } from '../../../rehearsal/dynamodb.ts';
import { runStrongroom } from '../../../rehearsal/signer.ts';
import { createDynamoDBClient } from '../../../signer/aws/dynamodb.ts';
import { readRevisions } from '../../../signer/keys/table/calls.ts';

it('setup tables creates the key table beside the state table', async () => {
  const world = await startCustody();
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-setup-'));
  const client = createDynamoDBClient(dynamoDBClientOptions(world.dynamodb.endpoint));
  try {
    const file = join(folder, 'strongroom.yaml');
    const config = {
      ...world.configuration('state', world.createCeremony()),
      anti_slashing: {},
      key_sources: { dynamodb: { table: 'keys' } },
    };
    writeFileSync(file, stringify(config, { aliasDuplicateObjects: false }));
    const setup = await runStrongroom(['setup', 'tables', '-c', file], { env: world.environment() });
    expect(setup).toMatchObject({ code: 0, stdout: 'state: created\nkeys: created\n' });
    expect(await readRevisions({ client, tableName: 'keys' })).toEqual(Array.from({ length: 16 }, () => 0));
  } finally {
    client.destroy();
    rmSync(folder, { recursive: true, force: true });
    await world.close();
  }
});
