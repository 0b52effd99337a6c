// The enclave's log on the parent: untrusted lines, at a bounded rate, with bounded memory.

import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { CONFIGURATION_PORT, LOG_PORT } from '../../../signer/api/parent-ports.ts';
import { type ProxyTestOptions, type ProxyUnderTest, startProxyUnderTest } from '../../support/parent-proxy.ts';
import { closed, hear } from '../../support/streams.ts';

let proxy: ProxyUnderTest;

async function start(options?: ProxyTestOptions): Promise<void> {
  proxy = await startProxyUnderTest(options);
}

afterEach(() => proxy.close());

async function logged(...writes: readonly (string | Buffer)[]): Promise<string[]> {
  const socket = await proxy.enclave.connect(LOG_PORT);
  for (const bytes of writes) socket.write(bytes);
  socket.end();
  await hear(socket);
  await closed(socket);
  return proxy.lines.filter((line) => line.startsWith('{"source":"enclave"'));
}

describe('the log of the enclave', () => {
  it('is written line by line, as it was, and says where it comes from', async () => {
    await start();
    const record = '{"level":"info","slot":18446744073709551615,"msg":"signed"}';
    expect(await logged(`${record}\n`)).toEqual([`{"source":"enclave","record":${record}}`]);
    expect(proxy.sample('svc_parent_proxy_log_lines_total{form="json"}')).toBe(1);
  });

  it('is put together from what arrives in pieces, and the last line needs no LF', async () => {
    await start();
    expect(await logged('{"msg":"o', 'ne"}\n{"msg"', ':"two"}\n\n{"msg":"three"}')).toEqual(
      ['one', 'two', 'three'].map((msg) => `{"source":"enclave","record":{"msg":"${msg}"}}`),
    );
  });

  it.each([
    ['text', 'panic: no JSON', '"text":"panic: no JSON"'],
    ['an array', '[1]', '"text":"[1]"'],
    ['an object with something behind it', '{} ,"source":"proxy"', '"text":"{} ,\\"source\\":\\"proxy\\""'],
    ['two objects', '{"a":1}{"b":2}', '"text":"{\\"a\\":1}{\\"b\\":2}"'],
    ['a terminal escape', '\u001b[2J\u001b]0;owned\u0007', '"text":"\\u001b[2J\\u001b]0;owned\\u0007"'],
    ['a carriage return', 'real\rfake', '"text":"real\\rfake"'],
    ['C1 and bidirectional controls in JSON', '{"a":"\u009b31m\u202egnp"}', '"record":{"a":"\\u009b31m\\u202egnp"}'],
    ['invisible text beyond the basic plane', '{"a":"\u{e0041}"}', '"record":{"a":"\\udb40\\udc41"}'],
    ['a tab between tokens', '{\t"a":1}', '"record":{ "a":1}'],
    [
      'a line that claims to be ours',
      '{"source":"proxy","level":"info"}',
      '"record":{"source":"proxy","level":"info"}',
    ],
  ])('escapes %s', async (_, line, expected) => {
    await start();
    const lines = await logged(`${line}\n`);
    expect(lines).toEqual([`{"source":"enclave",${expected}}`]);
    expect(() => JSON.parse(lines[0] ?? '')).not.toThrow();
  });

  it('is valid JSON on one line, whatever bytes come', async () => {
    await start();
    const garbage = Buffer.from(
      Array.from({ length: 200_000 }, (_, index) => (index * 7919 + (index >> 8) * 104_729) & 0xff),
    );
    const lines = await logged(garbage);
    expect(lines.length).toBeGreaterThan(100);
    for (const line of lines) {
      expect(JSON.parse(line)).toMatchObject({ source: 'enclave' });
      expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }
  });

  it('survives nesting that no parser should follow', async () => {
    await start();
    const deep = `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`;
    expect(await logged(`${deep}\n{"msg":"next"}\n`)).toHaveLength(2);
  });

  it('cuts a line at the limit and goes on with the next', async () => {
    await start();
    const [cut, next] = await logged('x'.repeat(300_000), '\n{"msg":"next"}\n');
    expect(JSON.parse(cut ?? '')).toEqual({
      source: 'enclave',
      truncated: true,
      text: expect.stringMatching(/^x{40000}/),
    });
    expect(next).toBe('{"source":"enclave","record":{"msg":"next"}}');
    expect(proxy.sample('svc_parent_proxy_log_lines_total{form="truncated"}')).toBe(1);
  });

  it.each([
    ['text', (fake: string) => `${'x'.repeat(49_000)}${fake}`],
    ['a record', (fake: string) => JSON.stringify({ a: 'x'.repeat(49_000), fake })],
    ['escapes', (fake: string) => `${'\u001b'.repeat(9000)}${fake}`],
    ['text beyond ASCII', (fake: string) => `${'€'.repeat(17_000)}${fake}`],
  ])('is never so long that journald breaks it, and what follows passes for another line: %s', async (_, made) => {
    await start();
    const lines = await logged(`${made('{"level":"info","module":"server","msg":"ready"}')}\n`);
    expect(lines).toHaveLength(1);
    for (const line of lines) {
      expect(Buffer.byteLength(line)).toBeLessThan(48 * 1024);
      expect(JSON.parse(line)).toMatchObject({
        source: 'enclave',
        truncated: true,
        text: expect.stringMatching(/.{5000}/s),
      });
    }
  });

  it('comes no faster than the rate: the enclave waits, and no line is lost', async () => {
    const waits: number[] = [];
    let now = 0;
    await start({
      logs: { max_bytes_per_second: 65_536 },
      clock: {
        monotonic: () => now,
        pause: async (milliseconds) => {
          waits.push(milliseconds);
          now += milliseconds;
        },
      },
    });
    const line = `{"msg":"${'x'.repeat(989)}"}\n`;
    const count = 1000;
    expect(await logged(line.repeat(count))).toHaveLength(count);
    const seconds = (line.length * count) / 65_536 - 1; // after the first second's bytes
    expect(waits.reduce((sum, each) => sum + each, 0) / 1000).toBeGreaterThanOrEqual(Math.floor(seconds));
  });

  it('counts what is written, not what came: short lines do not multiply', async () => {
    const waits: number[] = [];
    await start({
      logs: { max_bytes_per_second: 65_536 },
      clock: { monotonic: () => 0, pause: async (milliseconds) => void waits.push(milliseconds) },
    });
    await logged('x\n'.repeat(5000));
    expect(waits.some((milliseconds) => milliseconds > 1000)).toBe(true);
  });

  it('stops reading while nobody takes the log', async () => {
    const taken = Promise.withResolvers<void>();
    let writes = 0;
    await start({
      output: {
        write: (lines) => {
          if (lines.startsWith('{"source":"enclave"')) writes += 1;
          return false;
        },
        drained: () => taken.promise,
      },
    });
    const socket = await proxy.enclave.connect(LOG_PORT);
    const flood = Buffer.from(`${'y'.repeat(99)}\n`.repeat(10_000));
    let sent = 0;
    const send = (): void => {
      while (sent < 64 && socket.write(flood)) sent += 1;
    };
    socket.on('drain', send);
    send();
    await proxy.reaches('svc_parent_proxy_log_pauses_total', 1);
    // Turns of its event loop in which a proxy that went on reading would have read more.
    for (let turn = 0; turn < 10; turn++) await hear(await proxy.enclave.connect(CONFIGURATION_PORT));
    expect(writes).toBe(1);
    expect(sent).toBeLessThan(10);
    taken.resolve();
    await proxy.reaches('svc_parent_proxy_log_pauses_total', 2);
    socket.destroy();
  });

  it('waits once for all connections: those that come meanwhile are not read, and those that went leave nothing', async () => {
    const over = Promise.withResolvers<void>();
    let waits = 0;
    let now = 0;
    await start({
      logs: { max_bytes_per_second: 65_536 },
      clock: {
        monotonic: () => now,
        pause: async (milliseconds) => {
          waits += 1;
          await over.promise;
          now += milliseconds;
        },
      },
    });
    const sockets: Socket[] = [];
    const line = `${'y'.repeat(9999)}\n`;
    for (let count = 1; count <= 20; count++) {
      const socket = await proxy.enclave.connect(LOG_PORT);
      socket.on('error', () => undefined);
      socket.write(line.repeat(30));
      sockets.push(socket);
      await proxy.reaches('svc_parent_proxy_connections_total{service="logs",port="7000",outcome="served"}', count);
      if (count === 1) await proxy.reaches('svc_parent_proxy_log_pauses_total', 1);
    }
    const received = proxy.sample('svc_parent_proxy_bytes_total{service="logs",port="7000",direction="from_enclave"}');
    expect(received).toBeLessThan(4 * 65_536);
    for (const socket of sockets) socket.destroy();
    const late = logged('{"msg":"late"}\n');
    await proxy.reaches('svc_parent_proxy_connections_total{service="logs",port="7000",outcome="served"}', 21);
    expect(waits).toBe(1);
    over.resolve();
    expect(await late).toContain('{"source":"enclave","record":{"msg":"late"}}');
  });

  it('takes the newest connection when too many are open: an enclave that was restarted gets through', async () => {
    await start();
    const old = await Promise.all(Array.from({ length: 40 }, () => proxy.enclave.connect(LOG_PORT)));
    for (const socket of old) socket.on('error', () => undefined);
    expect(await logged('{"msg":"the new one"}\n')).toHaveLength(1);
    await proxy.reaches('svc_parent_proxy_open_connections{service="logs",port="7000"}', 3);
    for (const socket of old) socket.destroy();
  });
});
