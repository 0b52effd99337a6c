import { describe, expect, it } from 'vitest';
import { Places } from '../../common/formats/places.ts';

interface Client {
  readonly name: string;
}
const client = (name: string): Client => ({ name });

describe('when every place is taken', () => {
  it('the address that has most of those who wait loses its oldest, and the newcomer gets in', () => {
    const places = new Places<Client>(4);
    const [first, second, third] = ['a1', 'a2', 'a3'].map(client) as [Client, Client, Client];
    for (const one of [first, second, third]) expect(places.enter(one, '192.0.2.1')).toBeUndefined();
    expect(places.enter(client('b'), '192.0.2.2')).toBeUndefined();
    expect(places.enter(client('c'), '192.0.2.3')).toBe(first);
    expect(places.enter(client('d'), '192.0.2.4')).toBe(second);
    expect(places.taken).toBe(4);
  });

  it('an address that floods displaces its own', () => {
    const places = new Places<Client>(3);
    const honest = client('honest');
    places.enter(honest, '192.0.2.9');
    const displaced = Array.from({ length: 1000 }, (_, n) => places.enter(client(`flood ${n}`), '192.0.2.1'));
    expect(displaced).not.toContain(honest);
    expect(displaced.filter((one) => one !== undefined).map(({ name }) => name)).toEqual(
      Array.from({ length: 998 }, (_, n) => `flood ${n}`),
    );
  });

  it('who was admitted is never displaced: the newcomer goes when nobody else waits', () => {
    const places = new Places<Client>(2);
    const admitted = [client('one'), client('two')];
    for (const one of admitted) {
      places.enter(one, '192.0.2.1');
      places.settle(one);
    }
    const newcomer = client('new');
    expect(places.enter(newcomer, '192.0.2.2')).toBe(newcomer);
    expect(places.taken).toBe(2);
    places.leave(admitted[0] as Client);
    expect(places.enter(client('next'), '192.0.2.2')).toBeUndefined();
  });

  it('all of an IPv6 /64 are one, as are an IPv4 address and its mapped form, and all without an address', () => {
    for (const [one, same, other] of [
      ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:3::1'],
      ['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.2'],
      [undefined, undefined, '192.0.2.2'],
    ] as const) {
      const places = new Places<Client>(3);
      const oldest = client('oldest');
      places.enter(client('other'), other);
      places.enter(oldest, one);
      places.enter(client('same'), same);
      expect(places.enter(client('new'), '198.51.100.1')).toBe(oldest);
    }
  });

  it('whose address becomes known counts for that address', () => {
    const places = new Places<Client>(3);
    const attackers = [client('a1'), client('a2')] as const;
    places.enter(client('unknown'), undefined);
    for (const one of attackers) {
      places.enter(one, undefined);
      places.name(one, '192.0.2.1');
    }
    expect(places.enter(client('new'), '192.0.2.2')).toBe(attackers[0]);
  });
});

it('who has left has no place, and cannot be admitted or named any more', () => {
  const places = new Places<Client>(1);
  const gone = client('gone');
  places.enter(gone, '192.0.2.1');
  places.leave(gone);
  places.settle(gone);
  places.name(gone, '192.0.2.2');
  expect(places.taken).toBe(0);
});
