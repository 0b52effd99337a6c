// `strongroom operator top` (docs/guides/top.md). Rates come from metrics listeners, over plain HTTP, which get no
// token. It changes nothing.

import { setTimeout as pause } from 'node:timers/promises';
import type { DocumentProvider } from '../../common/attestation/contract.ts';
import type { FlagValue } from '../../common/command-line/arguments.ts';
import { plural } from '../../common/command-line/printable.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';
import { createClient } from '../client.ts';
import { localCommand } from '../command.ts';
import { COMMON_FLAGS } from '../common-flags.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import type { OutputFormat } from '../output.ts';
import { readSeconds, resolveSettings, type Settings } from '../settings.ts';
import { readToken } from '../token.ts';
import { History } from '../top/history.ts';
import { KeysPage } from '../top/keys-page.ts';
import { type Replica, type ReplicaSample, sample } from '../top/sample.ts';
import { openKeyboard, openScreen, type Screen } from '../top/screen.ts';
import { differencesOf, exitCodeOf, type ReplicaView, renderFleet, viewOf } from '../top/view.ts';

const DEFAULT_INTERVAL_SECONDS = 2;

const DEFAULT_METRICS_PORT = 3000;

/** A replica that does not answer holds up the view no longer. */
const TIMEOUT_SECONDS = 5;
const MAX_REPLICAS = 64;

export const top = localCommand(
  {
    summary: 'Watch all replicas: state, generation, measurements, keys, rate, p99, refusals',
    flags: {
      replica: {
        placeholder: 'PROFILE|URL',
        meaning: 'A replica; repeat for others',
        repeatable: true,
        isProfile: true,
      },
      metrics: { placeholder: 'URL', meaning: 'Its metrics, in the order of --replica', repeatable: true },
      interval: { placeholder: 'SECONDS', meaning: `Between two looks; default ${DEFAULT_INTERVAL_SECONDS}` },
      once: { meaning: 'Two looks, one frame, and exit: for scripts' },
      ...COMMON_FLAGS,
    },
    notes: [
      `Metrics are looked for at http://HOST:${DEFAULT_METRICS_PORT} of each replica unless --metrics says where. They ` +
        'come over plain HTTP and unattested, also of an enclave. The status needs the scope chamber_status; without it ' +
        'state and rates are shown alone. On a terminal, k shows the keys of a replica, and q ends.',
    ],
    examples: ['top --replica signer-1 --replica signer-2', 'top --once --json --profile mainnet'],
  },

  async ({ values, terminal, provider }) => {
    const intervalSeconds = readSeconds(
      values.interval === undefined ? undefined : { text: values.interval, origin: '--interval' },
      DEFAULT_INTERVAL_SECONDS,
    );
    const { replicas, format } = await openReplicas({ values, terminal, provider });
    const watch: Watch = { replicas, intervalSeconds, once: values.once, format };
    const last = await watchFleet(watch, terminal);
    if (!values.once) return;
    const views = last.map(viewOf);
    const exitCode = exitCodeOf(views);
    if (exitCode === 0) return;
    const down = views.filter(({ state }) => state !== 'up').map(({ name }) => name);
    if (views.every(({ state }) => state === 'up' || state === 'loading'))
      throw new CommandFailure(exitCode, `not up: ${down.join(', ')}`, 'keys are still being loaded: wait');
    const advice = views.some(({ state }) => state === 'away')
      ? '`strongroom operator doctor` says why one does not answer, `strongroom operator recover` what to do about others'
      : '`strongroom operator recover` says what to do';
    throw new CommandFailure(exitCode, `not up: ${down.join(', ')}`, advice);
  },
);

interface Watch {
  readonly replicas: readonly Replica[];
  readonly intervalSeconds: number;
  readonly once: boolean;
  readonly format: OutputFormat;
}

/** Until a signal or a key ends it; with `once` two looks. @returns the last look */
async function watchFleet(watch: Watch, terminal: Terminal): Promise<readonly ReplicaSample[]> {
  const { replicas, intervalSeconds, once } = watch;
  const ending = new AbortController();
  const end = (): void => ending.abort();
  for (const signal of SIGNALS) process.once(signal, end);
  const live = !once && watch.format === 'table';
  const screen = openScreen(terminal, live);
  const shown = openShown(watch, { screen, terminal, end, live });
  let samples: readonly ReplicaSample[] = [];
  try {
    for (let looks = 1; !ending.signal.aborted; looks++) {
      const earlier = samples;
      const look = Promise.all(replicas.map((replica, at) => sample(replica, earlier[at])));
      const seen = await Promise.race([look, aborted(ending.signal)]);
      if (seen === undefined) break;
      samples = seen;
      shown.add(samples);
      if (!once || looks === 2) shown.draw();
      if (once && looks === 2) break;
      await pause(intervalSeconds * 1000, undefined, { signal: ending.signal }).catch(() => undefined);
    }
    return samples;
  } finally {
    shown.close();
    screen.close();
    for (const signal of SIGNALS) process.off(signal, end);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

interface Shown {
  add(samples: readonly ReplicaSample[]): void;
  draw(): void;
  close(): void;
}

interface ShownParts {
  readonly screen: Screen;
  readonly terminal: Terminal;
  readonly end: () => void;
  readonly live: boolean;
}

/** The fleet, or a page of keys: what the keyboard chose. */
function openShown(watch: Watch, { screen, terminal, end, live }: ShownParts): Shown {
  const history = new History();
  let views: readonly ReplicaView[] = [];
  let page: KeysPage | undefined;
  const hasKeyboard = live && terminal.stdin.isTTY === true && terminal.stdout.isTTY === true;
  const draw = (): void => {
    if (watch.format === 'json') {
      writeJson(views, terminal);
      return;
    }
    const size = { ...screen.size(), paint: screen.paint };
    const title = titleOf(watch, hasKeyboard);
    const trends = live ? history.trends : undefined;
    if (page !== undefined) screen.show(page.render(size));
    else if (views.length > 0) screen.show(renderFleet(views, { ...size, title, trends }));
  };
  const closeKeyboard = hasKeyboard
    ? openKeyboard(terminal, (key) => {
        if (key === 'quit') return end();
        if (key === 'keys') page = page === undefined ? new KeysPage(watch.replicas) : undefined;
        draw();
        const asked = page?.act(key === 'keys' ? undefined : key, screen.size().rows);
        void asked?.then(draw);
      })
    : undefined;
  return {
    add(samples) {
      views = samples.map(viewOf);
      history.add(views);
    },
    draw,
    close: () => closeKeyboard?.(),
  };
}

function writeJson(views: readonly ReplicaView[], terminal: Terminal): void {
  const time = new Date().toISOString();
  terminal.stdout.write(
    `${JSON.stringify({ time, replicas: views.map(jsonOf), differences: differencesOf(views) })}\n`,
  );
}

function titleOf({ replicas, intervalSeconds, once }: Watch, hasKeyboard: boolean): string {
  const time = new Date()
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC');
  const ways = hasKeyboard ? 'k keys, q ends' : 'Ctrl-C ends';
  const every = once ? '' : `, every ${intervalSeconds} s: ${ways}`;
  return `strongroom: ${plural(replicas.length, 'replica')}, ${time}${every}`;
}

function jsonOf(view: ReplicaView) {
  const entries = Object.entries(view).map(([name, value]): [string, unknown] => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return Object.fromEntries(entries);
}

interface TopCall {
  readonly values: Readonly<Record<string, FlagValue>> & {
    readonly replica: readonly string[] | undefined;
    readonly metrics: readonly string[] | undefined;
  };
  readonly terminal: Terminal;
  readonly provider: DocumentProvider;
}

async function openReplicas({ values, terminal, provider }: TopCall): Promise<Pick<Watch, 'replicas' | 'format'>> {
  const names = values.replica ?? [undefined];
  if (names.length > MAX_REPLICAS) throw new UsageFailure(`--replica: at most ${MAX_REPLICAS}`);
  const metrics = values.metrics ?? [];
  if (metrics.length > names.length) throw new UsageFailure('--metrics is given more often than --replica');
  const replicas: Replica[] = [];
  let format: OutputFormat = 'table';
  for (const [at, name] of names.entries()) {
    const given = name === undefined ? {} : name.includes('://') ? { 'signer-url': name } : { profile: name };
    const settings = resolveSettings({ ...values, ...given }, terminal.env, provider, TIMEOUT_SECONDS);
    if (settings.token?.text === '-') throw new UsageFailure('stdin is no place for a token that is used many times');
    const token = settings.token === undefined ? undefined : await readToken(settings.token, terminal);
    format = settings.output;
    replicas.push(replicaOf(name, settings, { token, metrics: metrics[at] }));
  }
  return { replicas, format };
}

function replicaOf(
  name: string | undefined,
  { peer, timeoutSeconds }: Settings,
  { token, metrics }: { readonly token: string | undefined; readonly metrics: string | undefined },
): Replica {
  const url =
    metrics === undefined ? new URL(`http://${peer.url.hostname}:${DEFAULT_METRICS_PORT}`) : metricsUrl(metrics);
  const metricsPeer = { url, trustedCertificates: undefined, serverName: undefined, attestation: undefined };
  return {
    name: name === undefined || name.includes('://') ? peer.url.host : name,
    client: createClient({ peer, token, timeoutSeconds }),
    hasToken: token !== undefined,
    metrics: createClient({ peer: metricsPeer, token: undefined, timeoutSeconds }),
  };
}

function metricsUrl(written: string): URL {
  const url = URL.canParse(written) ? new URL(written) : undefined;
  const isPlain = url?.protocol === 'http:' && url.username === '' && ['/', '/metrics'].includes(url.pathname);
  if (url === undefined || !isPlain) {
    throw new UsageFailure('--metrics is not an http: URL of a metrics listener', 'for example http://10.0.0.7:3000');
  }
  return url;
}
