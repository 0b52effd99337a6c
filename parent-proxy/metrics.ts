// The table of the parent proxy's metrics, from which docs/reference/parent-proxy.md is made. Labels are bounded by the
// configuration. No address and no name is a label.

import { readdirSync } from 'node:fs';

const SERVICES = ['tls', 'probes', 'metrics', 'egress', 'logs', 'configuration', 'credentials'] as const;
export type ServiceName = (typeof SERVICES)[number];

interface Entry {
  readonly type: 'counter' | 'gauge';
  readonly name: string;
  readonly help: string;
  readonly labels: Readonly<Record<string, string>>;
}

export const EVERY_SERVICE = SERVICES.join(', ');
const service = EVERY_SERVICE;
const port = 'the vsock port';

export const PROXY_METRICS = {
  connections: {
    type: 'counter',
    name: 'svc_parent_proxy_connections_total',
    help: 'Connections that arrived, by what became of them at first.',
    labels: { service, port, outcome: 'forwarded, served, limit, connect_failed, gone' },
  },
  openConnections: {
    type: 'gauge',
    name: 'svc_parent_proxy_open_connections',
    help: 'Connections that hold one of the places of their port.',
    labels: { service, port },
  },
  maxConnections: {
    type: 'gauge',
    name: 'svc_parent_proxy_max_connections',
    help: 'Places of the port: beyond, a connection is displaced, or the new one is cut off.',
    labels: { service, port },
  },
  displaced: {
    type: 'counter',
    name: 'svc_parent_proxy_displaced_connections_total',
    help: 'Connections that lost their place to a newcomer: no answer had gone through them, and their address had most of such.',
    labels: { service, port },
  },
  ends: {
    type: 'counter',
    name: 'svc_parent_proxy_connection_ends_total',
    help: 'Forwarded connections that ended, by how: complete is an end in both directions.',
    labels: { service, port, reason: 'complete, broken, idle, shutdown' },
  },
  bytes: {
    type: 'counter',
    name: 'svc_parent_proxy_transferred_bytes_total',
    help: 'Bytes carried, by direction.',
    labels: { service, port, direction: 'to_enclave, from_enclave' },
  },
  connectFailures: {
    type: 'counter',
    name: 'svc_parent_proxy_connect_failures_total',
    help: 'Connects that failed, each attempt counted, to the enclave (ingress) or to the endpoint (egress).',
    labels: { service, port, reason: 'refused, timeout, unresolvable, unreachable, failed' },
  },
  acceptFailures: {
    type: 'counter',
    name: 'svc_parent_proxy_accept_failures_total',
    help: 'Connections that the system could not accept, such as for want of file descriptors.',
    labels: { service, port },
  },
  logLines: {
    type: 'counter',
    name: 'svc_parent_proxy_log_lines_total',
    help: 'Lines of the enclave written to the log, by form: a JSON object, other text, or text cut at the limit.',
    labels: { form: 'json, text, truncated' },
  },
  logPauses: {
    type: 'counter',
    name: 'svc_parent_proxy_log_pauses_total',
    help: 'Times the enclave had to wait with its log, for the rate or for whoever reads this log.',
    labels: {},
  },
  lostLogLines: {
    type: 'gauge',
    name: 'svc_parent_proxy_lost_log_lines',
    help: 'Lines lost since the start: the log could not be written, or its reader did not take them.',
    labels: {},
  },
  credentials: {
    type: 'counter',
    name: 'svc_parent_proxy_credentials_requests_total',
    help: 'Requests for AWS credentials, by answer.',
    labels: { outcome: 'ok, unavailable, refused' },
  },
  credentialsExpiry: {
    type: 'gauge',
    name: 'svc_parent_proxy_credentials_expiry_timestamp_seconds',
    help: 'When the credentials handed over last expire, Unix time.',
    labels: {},
  },
  residentBytes: {
    type: 'gauge',
    name: 'svc_parent_proxy_resident_memory_bytes',
    help: 'Resident memory of the parent proxy.',
    labels: {},
  },
  fileDescriptors: {
    type: 'gauge',
    name: 'svc_parent_proxy_open_file_descriptors',
    help: 'Open file descriptors of the parent proxy.',
    labels: {},
  },
} as const satisfies Record<string, Entry>;

export type MetricName = keyof typeof PROXY_METRICS;
type LabelsOf<Name extends MetricName> = {
  readonly [Label in keyof (typeof PROXY_METRICS)[Name]['labels']]: string | number;
};

export interface Series {
  add(amount: number): void;
  set(value: number): void;
}

export interface ProxyMetrics {
  at<Name extends MetricName>(name: Name, labels: LabelsOf<Name>): Series;
  onRender(collect: () => void): void;
  render(): string;
}

export function createProxyMetrics(): ProxyMetrics {
  const values = new Map<MetricName, Map<string, { value: number } & Series>>();
  const collectors: (() => void)[] = [];
  const at: ProxyMetrics['at'] = (name, labels) => {
    const key = labelText(labels);
    const family = values.get(name) ?? new Map<string, { value: number } & Series>();
    values.set(name, family);
    const series = family.get(key) ?? createSeries();
    family.set(key, series);
    return series;
  };
  return {
    at,
    onRender: (collect) => void collectors.push(collect),
    render() {
      at('residentBytes', {}).set(process.memoryUsage.rss());
      if (process.platform === 'linux') at('fileDescriptors', {}).set(readdirSync('/proc/self/fd').length - 1);
      for (const collect of collectors) collect();
      return (Object.keys(PROXY_METRICS) as MetricName[])
        .flatMap((name) => {
          const { name: shown, help, type } = PROXY_METRICS[name];
          const lines = [...(values.get(name) ?? [])].map(([key, { value }]) => `${shown}${key} ${value}`);
          return lines.length === 0 ? [] : [`# HELP ${shown} ${help}`, `# TYPE ${shown} ${type}`, ...lines];
        })
        .join('\n')
        .concat('\n');
    },
  };
}

function createSeries(): { value: number } & Series {
  const series = {
    value: 0,
    add: (amount: number) => {
      series.value += amount;
    },
    set: (value: number) => {
      series.value = value;
    },
  };
  return series;
}

/** Values are ours: words of the table and numbers, nothing to escape. */
function labelText(labels: object): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${String(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}
