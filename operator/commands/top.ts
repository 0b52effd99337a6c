// `strongroom operator top`: a live view of all replicas of a fleet, or one look for a script. State, generation,
// measurements and keys are asked of each signer as every command asks it (verified, with its token); rates come from
// its metrics listener, which is plain HTTP and gets no token. It changes nothing.

import { setTimeout as pause } from 'node:timers/promises';
import type { FlagValue } from '../../command-line/arguments.ts';
import type { Terminal } from '../../command-line/terminal.ts';
import type { DocumentProvider } from '../attestation/provider.ts';
import { createClient } from '../client.ts';
import type { LocalCall } from '../command.ts';
import { DEFAULT_INTERVAL_SECONDS, DEFAULT_METRICS_PORT, type top } from '../descriptions/replicas.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import type { OutputFormat } from '../output.ts';
import { readSeconds, resolveSettings, type Settings } from '../settings.ts';
import { readToken } from '../token.ts';
import { type Replica, type Sample, sample } from '../top/sample.ts';
import { openScreen, type Screen } from '../top/screen.ts';
import { differencesOf, exitCodeOf, renderFleet, viewOf } from '../top/view.ts';

/** A replica that does not answer holds up the view no longer. */
const TIMEOUT_SECONDS = 5;
const MAX_REPLICAS = 64;

export async function watchReplicas({ values, terminal, provider }: LocalCall<typeof top.flags>): Promise<void> {
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
  const advice = views.some(({ state }) => state === 'away')
    ? '`strongroom operator doctor` says why one does not answer, `strongroom operator recover` what to do about others'
    : '`strongroom operator recover` says what to do';
  throw new CommandFailure(exitCode, `not up: ${down.join(', ')}`, advice);
}

interface Watch {
  readonly replicas: readonly Replica[];
  readonly intervalSeconds: number;
  readonly once: boolean;
  readonly format: OutputFormat;
}

/** Until a signal ends it; with `once` two looks. @returns the last look */
async function watchFleet(watch: Watch, terminal: Terminal): Promise<readonly Sample[]> {
  const { replicas, intervalSeconds, once } = watch;
  const ending = new AbortController();
  const end = (): void => ending.abort();
  for (const signal of SIGNALS) process.once(signal, end);
  const screen = openScreen(terminal, !once && watch.format === 'table');
  let samples: readonly Sample[] = [];
  try {
    for (let looks = 1; !ending.signal.aborted; looks++) {
      const earlier = samples;
      const look = Promise.all(replicas.map((replica, at) => sample(replica, earlier[at])));
      const seen = await Promise.race([look, aborted(ending.signal)]);
      if (seen === undefined) break;
      samples = seen;
      if (!once || looks === 2) show(samples, watch, { screen, terminal });
      if (once && looks === 2) break;
      await pause(intervalSeconds * 1000, undefined, { signal: ending.signal }).catch(() => undefined);
    }
    return samples;
  } finally {
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

function show(
  samples: readonly Sample[],
  { replicas, intervalSeconds, format, once }: Watch,
  { screen, terminal }: { readonly screen: Screen; readonly terminal: Terminal },
): void {
  const views = samples.map(viewOf);
  const time = new Date().toISOString();
  if (format === 'json') {
    terminal.stdout.write(
      `${JSON.stringify({ time, replicas: views.map(jsonOf), differences: differencesOf(views) })}\n`,
    );
    return;
  }
  const every = once ? '' : `, every ${intervalSeconds} s, Ctrl-C ends`;
  const title = `strongroom: ${replicas.length} ${replicas.length === 1 ? 'replica' : 'replicas'}, ${time}${every}`;
  screen.show(renderFleet(views, { ...screen.size(), paint: screen.paint, title }));
}

/** snake_case, as all JSON here. */
function jsonOf(view: ReturnType<typeof viewOf>) {
  const entries = Object.entries(view).map(([name, value]): [string, unknown] => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return Object.fromEntries(entries);
}

interface Asked {
  readonly values: Readonly<Record<string, FlagValue>> & {
    readonly replica: readonly string[] | undefined;
    readonly metrics: readonly string[] | undefined;
  };
  readonly terminal: Terminal;
  readonly provider: DocumentProvider;
}

async function openReplicas({ values, terminal, provider }: Asked): Promise<Pick<Watch, 'replicas' | 'format'>> {
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
