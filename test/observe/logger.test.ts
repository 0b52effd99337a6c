import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseLogFilter } from '../../common/observe/log-filter.ts';
import { createLogger } from '../../common/observe/logger.ts';

function recorder(): { lines: string[]; write(line: string): void } {
  const lines: string[] = [];
  return { lines, write: (line) => void lines.push(line) };
}

describe('the log', () => {
  it('json lines carry time, level, module, fields and message', () => {
    const out = recorder();
    createLogger({ level: 'info', format: 'json' }, out).module('http').info({ key: '0xab' }, 'signed');
    expect(JSON.parse(out.lines[0] ?? '')).toMatchObject({ level: 'info', module: 'http', key: '0xab', msg: 'signed' });
  });

  it('text lines are one line each, whatever a value holds', () => {
    const out = recorder();
    const log = createLogger({ level: 'info', format: 'text', color: false }, out).module('auth');
    log.warn({ reason: 'a b\nINFO forged: line', ok: 1 }, 'refused\nnext');
    expect(out.lines[0]).toMatch(/^\S+ WARN {2}auth: refused next reason="a b\\nINFO forged: line" ok=1\n$/);
  });

  it('a module can have a level of its own', () => {
    const out = recorder();
    const logger = createLogger({ level: 'warn,slashing=debug,tls=off', format: 'json' }, out);
    logger.module('http').info({}, 'quiet');
    logger.module('slashing').debug({}, 'heard');
    logger.module('tls').error({}, 'off');
    expect(out.lines).toHaveLength(1);
    expect(out.lines[0]).toContain('heard');
  });

  it.each(['warn', 'error', 'http=warn,error'])(
    'audit lines are written at %s, as who signed what has a level of its own',
    (level) => {
      const out = recorder();
      createLogger({ level, format: 'json' }, out).module('audit').info({ audit: true }, 'request');
      expect(JSON.parse(out.lines[0] ?? '{}')).toMatchObject({ level: 'info', module: 'audit', audit: true });
    },
  );

  it.each(['audit=off', 'audit=warn', 'debug,audit=error', 'off'])('and not at %s', (level) => {
    const out = recorder();
    createLogger({ level, format: 'json' }, out).module('audit').info({ audit: true }, 'request');
    expect(out.lines).toEqual([]);
  });

  it.each(['', 'loud', 'info,http', 'http=', 'a=b=c', '=info', 'htpp=debug', 'info,Audit=warn'])(
    'a malformed filter is refused: %j',
    (filter) => {
      expect(parseLogFilter(filter)).toBeUndefined();
    },
  );

  it('fields that could hold a secret are redacted, also one level down', () => {
    const out = recorder();
    const log = createLogger({ level: 'info', format: 'json' }, out).module('auth');
    const planted = 'sr_client_THIS_IS_A_TEST_SECRET';
    log.info(
      { token: planted, password: planted, headers: { authorization: planted }, key: { privateKey: planted } },
      'x',
    );
    expect(out.lines.join('')).not.toContain(planted);
  });

  it.each(['secret_key', 'private_key', 'master_key', 'root_token'])(
    'a secret is redacted under the name that a member of a log line would have: %s',
    (name) => {
      const out = recorder();
      const log = createLogger({ level: 'info', format: 'json' }, out).module('keys');
      log.info({ [name]: 'THIS_IS_A_TEST_SECRET', detail: { [name]: 'THIS_IS_A_TEST_SECRET' } }, 'x');
      expect(out.lines.map((line) => JSON.parse(line))).toEqual([
        expect.objectContaining({ [name]: '[redacted]', detail: { [name]: '[redacted]' } }),
      ]);
    },
  );

  it('has every line at the end of the process, also what came while a write was under way', () => {
    const program = join(import.meta.dirname, 'last-lines.ts');
    const lines = execFileSync(process.execPath, [program], { encoding: 'utf8' }).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['under way', 'after it']);
  });

  it('takes lines of background work while it ends, and ends as it would without them', () => {
    const program = join(import.meta.dirname, 'lines-after-end.ts');
    const lines = execFileSync(process.execPath, [program], { encoding: 'utf8' }).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['last']);
  });
});
