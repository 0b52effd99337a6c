// `operator top`: what a look at the fleet shows at 80 and 120 columns, its rates, and the program itself on two real
// signers, in a pipe and on a terminal of its own (`script` of util-linux makes one).

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { CommandFailure } from '../../operator/exit.ts';
import { ratesBetween, readCounters } from '../../operator/top/counters.ts';
import { History } from '../../operator/top/history.ts';
import { differencesOf, exitCodeOf, type ReplicaView, renderFleet, viewOf } from '../../operator/top/view.ts';
import { cleanEnvironment, type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import { deploy, FULL_ACCESS } from '../support/deployment.ts';
import { lacking } from '../support/needs.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { attestation, rootOf, signCall, TEST_TOKEN, testKey } from '../support/requests.ts';

const WAIT = { timeout: LONGEST_WAIT_MS, interval: 200 };

const UP: ReplicaView = {
  name: 'signer-1',
  state: 'up',
  generation: 2,
  keys: 10_000,
  keysLoading: null,
  signedPerSecond: 812.25,
  p99Ms: 12.5,
  refusedPerSecond: 0,
  refusedMostly: null,
  refusedByScope: {},
  measurements: { 0: '4b8d62a1'.repeat(12), 16: 'aa'.repeat(48) },
  version: '0.1.0',
  network: 'mainnet',
  store: 'dynamodb',
  uptimeSeconds: 7300,
  concerns: [],
};
const SEALED: ReplicaView = {
  ...UP,
  name: 'a-replica-with-a-name-that-is-much-longer-than-the-line-has-room-for.example.org:9443',
  state: 'SEALED',
  measurements: { 0: 'ffffffff'.repeat(12) },
  concerns: [
    'sealed at 2026-11-22T10:00:00.000Z: a reason that is long enough to need a second line on 80 columns \u001b[2J',
  ],
};

const frame = (columns: number, rows = Number.POSITIVE_INFINITY) => ({
  columns,
  rows,
  title: 'strongroom: replicas',
  paint: (text: string) => text,
});

describe('a frame', () => {
  it.each([80, 120])('fits %i columns; what needs attention is whole, the verdict is last', (columns) => {
    const lines = renderFleet([UP, SEALED], frame(columns));
    expect(lines.filter((line) => line.length > columns)).toEqual([]);
    expect(lines.join('\n')).toContain('4b8d62a1');
    const text = lines.join(' ').replaceAll(/\s+/g, ' ');
    expect(text).toContain('a second line on 80 columns \\u{1b}[2J');
    expect(text).toContain('the replicas differ in their PCR0: 4b8d62a1, ffffffff');
    expect(lines.at(-1)).toBe('1 of 2 up, 1624.5 signatures a second');
    expect(lines.some((line) => line.includes('REFUSED MOSTLY'))).toBe(columns === 120);
  });

  it('says no rate where no metrics were seen, and marks a doubt otherwise than a fault', () => {
    const unseen: ReplicaView = { ...UP, signedPerSecond: null, concerns: ['its metrics do not answer'] };
    const paint = (text: string, tone: string) => `${tone} ${text}`;
    const alone = renderFleet([unseen], { ...frame(80), paint });
    expect(alone.at(-1)).toBe('good 1 of 1 up, signatures a second not known');
    expect(alone).toContain('doubtful ! signer-1: its metrics do not answer');
    expect(renderFleet([unseen, UP], frame(80)).at(-1)).toBe('2 of 2 up, 812.3 signatures a second, of 1 not known');
  });

  it('colours the state, the mark of a concern and the verdict, and nothing else', () => {
    const paint = (text: string, tone: string) => `<${tone} ${text}>`;
    const lines = renderFleet(
      [
        { ...UP, name: 'a' },
        { ...SEALED, name: 'b', concerns: ['sealed'] },
      ],
      {
        ...frame(80),
        paint,
      },
    );
    expect(lines.filter((line) => line.includes('<')).map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
      expect.stringMatching(/^b <bad SEALED> 2 10000 /),
      expect.stringMatching(/^a <good up> 2 10000 /),
      '<bad !> b: sealed',
      expect.stringMatching(/^<bad !> the replicas differ in their PCR0/),
      '<bad 1 of 2 up>, 1624.5 signatures a second',
    ]);
  });

  it('has the worst replica first, so that a small terminal shows it', () => {
    const view = (name: string, state: ReplicaView['state'], concerns: readonly string[] = []): ReplicaView => ({
      ...UP,
      name,
      state,
      concerns,
    });
    const views = [
      view('fine', 'up'),
      view('doubtful', 'up', ['x']),
      view('loading', 'loading', ['x']),
      view('stale', 'STALE', ['x']),
      view('down', 'DOWN', ['x']),
      view('away', 'away', ['x']),
      view('sealed', 'SEALED', ['x']),
      view('also-fine', 'up'),
    ];
    const names = renderFleet(views, frame(80)).map((line) => line.split(' ')[0]);
    expect(names.slice(3, 11)).toEqual(['sealed', 'away', 'down', 'stale', 'loading', 'doubtful', 'fine', 'also-fine']);
  });

  it('shows how rate and p99 came to be, and which scopes are refused', () => {
    const history = new History();
    const look = (signedPerSecond: number | null, p99Ms: number | null) => ({ ...UP, signedPerSecond, p99Ms });
    history.add([look(null, null), look(null, null)]);
    history.add([look(100, 5), look(100, 10)]);
    history.add([look(300, 20), look(100, 5)]);
    const views = [
      { ...look(300, 20), refusedByScope: { sign: 1.5, public_keys: 0.25 } },
      { ...look(100, 5), refusedByScope: { public_keys: 2 } },
    ];
    const lines = renderFleet(views, { ...frame(80), trends: history.trends });
    expect(lines.slice(-4, -1)).toEqual([
      'refused  public_keys 2.3/s, sign 1.5/s',
      'sign/s    ▅█  at most 400.0',
      'p99 ms    ▅█  at most 20.0',
    ]);
    const wide = renderFleet(views, { ...frame(160), trends: history.trends });
    expect(wide[2]).toMatch(/SIGN\/S SO FAR$/);
    expect(wide.filter((line) => line.length > 160)).toEqual([]);
    expect(wide[3]).toMatch(/ {2}▃█$/);
    expect(renderFleet(views, frame(160)).join('\n')).not.toMatch(/at most|SO FAR/);
    const unknown = new History();
    for (const _ of [1, 2, 3]) unknown.add([look(null, null)]);
    const without = renderFleet([look(null, null)], { ...frame(80), trends: unknown.trends });
    expect(without.filter((line) => /^(?:sign\/s|p99 ms)/.test(line))).toEqual([]);
  });

  it('of a replica that loads its keys says how far it is', () => {
    const keysLoading = { done: 9043, total: 10_000, remaining_seconds: 1.1 };
    const detail = 'keys are still being loaded: 9043 of 10000, about 2 s left';
    const check = (id: 'chamber' | 'keys') => ({ id, status: 'UP' }) as const;
    const checks = [check('chamber'), { id: 'keys', status: 'DOWN', detail, loading: keysLoading } as const];
    const health = { status: 'DOWN', checks, outcome: 'DOWN' } as const;
    const sample = { name: 'x', status: undefined, counters: undefined, at: 0, rates: undefined };
    const view = viewOf({ ...sample, health: { ...health, checks: [...checks] } });
    expect(view).toMatchObject({ state: 'loading', keysLoading });
    expect(view.concerns).toContain('keys are still being loaded: 9,043 of 10,000, 2 s left');
    expect(renderFleet([view], frame(80))[3]).toMatch(/^x +loading +- +9043\/10000 /);
    expect(exitCodeOf([view])).toBe(2);
    const down = { id: 'anti_slashing', status: 'DOWN' } as const;
    expect(viewOf({ ...sample, health: { ...health, checks: [...checks, down] } }).state).toBe('DOWN');
  });

  it('of more replicas than the terminal has lines says how many are not shown', () => {
    const many = Array.from({ length: 40 }, (_, at) => ({ ...UP, name: `signer-${at}` }));
    const lines = renderFleet(many, frame(80, 24));
    expect(lines).toHaveLength(24);
    expect(lines).toContain('and 22 more');
    const worried = renderFleet(
      many.map((view) => ({ ...view, concerns: ['x'] })),
      frame(80, 24),
    );
    expect(worried).toHaveLength(24);
    expect(worried.at(-1)).toMatch(/^40 of 40 up/);
  });

  it('a replica that is away says why, and no more', () => {
    const health = new CommandFailure(2, 'no answer');
    const view = viewOf({ name: 'x', health, status: undefined, counters: undefined, at: 0, rates: undefined });
    expect(view).toMatchObject({ state: 'away', keys: null, concerns: ['no answer'] });
    expect([exitCodeOf([UP]), exitCodeOf([UP, view]), exitCodeOf([view, SEALED])]).toEqual([0, 2, 3]);
    expect(differencesOf([UP, view])).toEqual([]);
  });
});

describe('rates', () => {
  const metrics = (signed: number, denied: number, buckets: readonly number[]) =>
    readCounters(
      [
        `svc_signing_requests_total{operation="ATTESTATION",outcome="signed"} ${signed}`,
        `svc_signing_requests_total{operation="BLOCK_V2",outcome="signed"} 1`,
        `svc_signing_requests_total{operation="ATTESTATION",outcome="denied"} ${denied}`,
        ...['0.01', '0.1', '+Inf'].map(
          (le, at) => `svc_signing_duration_seconds_bucket{le="${le}",operation="ATTESTATION"} ${buckets[at]}`,
        ),
        'svc_keys{source="filesystem",status="active"} 7',
        `svc_http_requests_total{route="/api/v1/eth2/sign/:identifier",status="4xx"} ${denied}`,
        `svc_http_requests_total{route="/api/v1/eth2/sign",status="4xx"} ${2 * denied}`,
        `svc_http_requests_total{route="/api/v1/chamber/keys",status="4xx"} ${denied}`,
        `svc_http_requests_total{route="/api/v1/eth2/publicKeys",status="4xx"} 9`,
        `svc_http_requests_total{route="/api/v1/eth2/publicKeys",status="2xx"} ${denied}`,
        `svc_http_requests_total{route="/upcheck",status="4xx"} ${denied}`,
        'something_else{a="b"} 5',
      ].join('\n'),
    );

  it('are of what came between two looks; the quantile is linear within its bucket', () => {
    const before = metrics(100, 3, [50, 100, 104]);
    const now = metrics(300, 13, [150, 250, 254]);
    expect(now.keys).toBe(7);
    const rates = ratesBetween(before, now, 10);
    expect(rates).toMatchObject({ signedPerSecond: 20, refusedPerSecond: 1, mainReason: 'denied' });
    expect([...rates.refusedByScope]).toEqual([
      ['sign', 3],
      ['chamber_keys_import|chamber_keys_list|chamber_keys_patch|chamber_keys_delete', 1],
    ]);
    expect(rates.p99Seconds).toBeCloseTo(0.01 + (0.09 * (148.5 - 100)) / 50, 9);
  });

  it('of a signer that was restarted count from its start', () => {
    const rates = ratesBetween(metrics(500, 9, [400, 500, 509]), metrics(20, 0, [20, 20, 20]), 10);
    expect(rates).toMatchObject({ signedPerSecond: 2.1, refusedPerSecond: 0, mainReason: undefined });
    expect(ratesBetween(metrics(5, 0, [5, 5, 5]), metrics(5, 0, [5, 5, 5]), 10).p99Seconds).toBeUndefined();
  });
});

describe('two signers', () => {
  let signers: readonly RunningSigner[];
  let args: readonly string[];
  const env = {
    SVC_OPERATOR_TOKEN: TEST_TOKEN,
    SVC_OPERATOR_ALLOW_PLAINTEXT_SIGNER: 'true',
    XDG_CONFIG_HOME: '/nonexistent',
  };
  beforeAll(async () => {
    const policy = { ...FULL_ACCESS, rules: [{ effect: 'allow' }] };
    const static_auth = { policies: [policy], tokens: [{ secret: TEST_TOKEN, policies: ['full'] }] };
    signers = await Promise.all([deploy(1, { static_auth }).start(), deploy(2, { static_auth }).start()]);
    args = signers.flatMap(({ url, metricsUrl }) => ['--replica', url, '--metrics', metricsUrl]);
  });
  afterAll(() => Promise.all(signers.map((signer) => signer.stop())));

  it('are shown once for a script: all up is 0, one away is 2; without a colour', async () => {
    const top = ['operator', 'top', '--once', '--interval', '2', ...args];
    const [first] = signers;
    const voting = setInterval(() => void signCall(first?.url ?? '', testKey(0).publicKey, attestation()), 200);
    // A replica that a busy machine holds up for five seconds is away: then it is looked at again.
    let table = await runStrongroom(top, { env });
    await vi.waitFor(async () => {
      if (table.code !== 0) table = await runStrongroom(top, { env });
      expect({ code: table.code, stderr: table.stderr }).toEqual({ code: 0, stderr: '' });
    }, WAIT);
    clearInterval(voting);
    expect(table.stdout).toMatch(/^127\.0\.0\.1:\d+ +up +- +1 +\d+\.\d /m);
    expect(table.stdout).toMatch(/\n2 of 2 up, \d+\.\d signatures a second\n$/);
    expect(table.stdout).not.toContain('\u001b');
    await vi.waitFor(async () => {
      const away = await runStrongroom([...top, '--replica', 'http://127.0.0.1:1', '--json'], { env });
      expect(away.code).toBe(2);
      const { replicas } = JSON.parse(away.stdout) as { replicas: { state: string; keys: number | null }[] };
      expect(replicas.map(({ state, keys }) => [state, keys])).toEqual([
        ['up', 1],
        ['up', 2],
        ['away', null],
      ]);
    }, WAIT);
  });

  const noTerminal = lacking('Linux', 'script');
  const onTerminal = async (answers: readonly (readonly [seen: string, pressed: string])[]) => {
    const program = join(import.meta.dirname, '../../bin/strongroom');
    const command = `stty cols 80 rows 24; exec ${program} operator top --interval 1 ${args.join(' ')}`;
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      env: { ...cleanEnvironment(), ...env, TERM: 'xterm' },
    });
    let screen = '';
    let from = 0;
    let step = 0;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      screen += text;
      for (let answer = answers[step]; answer !== undefined; answer = answers[step]) {
        const at = screen.indexOf(answer[0], from);
        if (at === -1) return;
        from = at + answer[0].length;
        step++;
        child.stdin.write(answer[1]);
      }
    });
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, screen };
  };

  it.skipIf(noTerminal)('on a terminal have its other screen, which Ctrl-C gives back, with exit code 0', async () => {
    const [first] = signers;
    await signCall(first?.url ?? '', testKey(0).publicKey, attestation({ head: rootOf(8) }));
    const { code, screen } = await onTerminal([['2 of 2 up', '\u0003']]);
    expect(code).toBe(0);
    expect(screen.startsWith('\u001b[?1049h\u001b[?25l')).toBe(true);
    expect(screen.trimEnd().endsWith('\u001b[?25h\u001b[?1049l')).toBe(true);
    expect(screen).toContain('\u001b[32m2 of 2 up\u001b[0m, ');
  });

  it.skipIf(noTerminal)('a key shows the keys of a replica, of the next one, and the fleet again; q ends', async () => {
    const [one, two] = signers.map(({ url }) => new URL(url).host);
    const { code, screen } = await onTerminal([
      ['k keys, q ends', 'k'],
      ['no more keys', 'r'],
      [`keys of ${two}`, ''],
      ['no more keys', 'k'],
      ['at most', 'q'],
    ]);
    expect(code).toBe(0);
    expect(screen).toContain(`keys of ${one}, page 1: n next, p back, r replica, k fleet, q ends`);
    expect(screen).toContain(`keys of ${two}, page 1`);
    const short = (number: number) => {
      const { publicKey } = testKey(number);
      return `${publicKey.slice(0, 10)}…${publicKey.slice(-6)}  filesystem  active  yes     -`;
    };
    expect(screen).toContain(short(0));
    expect(screen).toContain(short(1));
    expect(screen.trimEnd().endsWith('\u001b[?25h\u001b[?1049l')).toBe(true);
  });
});
