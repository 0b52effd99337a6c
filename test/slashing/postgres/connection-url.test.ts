// The connection URL of the slashing database: what it means, and what it may not say.

import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parsePostgresUrl } from '../../../signer/slashing/postgres/connection/address.ts';

describe('the connection URL', () => {
  const good = 'postgres://signer:secret@db.example:6432/slashing';

  it('gives host, port, user, password and database, with escapes decoded', () => {
    expect(parsePostgresUrl('postgresql://us%40er:p%3Ass%23@[::1]/slash%20ing?sslmode=disable')).toEqual({
      kind: 'address',
      host: '::1',
      port: 5432,
      user: 'us@er',
      password: 'p:ss#',
      database: 'slash ing',
      tls: 'disable',
      rootCertificateFile: undefined,
    });
    expect(parsePostgresUrl(good)).toMatchObject({ host: 'db.example', port: 6432, password: 'secret' });
  });

  it('without sslmode means TLS with the certificate and the name verified', () => {
    expect(parsePostgresUrl(good)).toMatchObject({ tls: 'verify-full' });
    expect(parsePostgresUrl(`${good}?sslrootcert=ca.pem`)).toMatchObject({
      tls: 'verify-full',
      rootCertificateFile: 'ca.pem',
    });
  });

  it('sslmode=require with sslrootcert means verify-ca, as in libpq', () => {
    expect(parsePostgresUrl(`${good}?sslmode=require`)).toMatchObject({ tls: 'require' });
    expect(parsePostgresUrl(`${good}?sslmode=require&sslrootcert=ca.pem`)).toMatchObject({ tls: 'verify-ca' });
  });

  it.each([
    'db.example',
    'mysql://signer:secret@db.example/slashing',
    'postgres:///slashing',
    'postgres://db.example/slashing',
    'postgres://signer:secret@db.example',
    'postgres://signer:secret@db.example/one/two',
    'postgres://signer:sec%rt@db.example/slashing',
    'postgres://signer:sec#ret@db.example/slashing',
    `${good}?sslmode=prefer`,
    `${good}?sslmode=allow`,
    `${good}?sslmode=VERIFY-FULL`,
    `${good}?sslmode=`,
    `${good}?sslmode=disable&sslmode=verify-full`,
    `${good}?sslmode=disable&sslrootcert=ca.pem`,
    `${good}?sslrootcert=`,
    `${good}?host=elsewhere.example`,
    `${good}?ssl=false`,
  ])('%s is refused, and the problem does not repeat it', (url) => {
    const reading = parsePostgresUrl(url);
    expect(reading.kind).toBe('invalid');
    expect(inspect(reading)).not.toMatch(/secret|sec%rt|example/);
  });
});
