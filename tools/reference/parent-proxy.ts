// docs/reference/parent-proxy.md, generated: what the parent proxy reads, its limits, its metrics. They are an
// interface.

import {
  CLIENT_LINGERS_MS,
  CONFIGURATION_TIMEOUT_MS,
  CREDENTIALS_CONNECTION_TIMEOUT_MS,
  DRAIN_QUIET_MS,
  MAX_CONFIGURATION_CONNECTIONS,
  MAX_CREDENTIALS_CONNECTIONS,
  MAX_LOG_CONNECTIONS,
  MAX_LOG_LINE_BYTES,
  MAX_PROXY_SCRAPERS,
  MAX_REQUEST_HEAD_BYTES,
  MAX_WRITTEN_LOG_LINE_BYTES,
  ROLE_CREDENTIALS_TIMEOUT_MS,
} from '../../parent-proxy/limits.ts';
import { EVERY_SERVICE, PROXY_METRICS } from '../../parent-proxy/metrics.ts';
import { MAX_CONFIGURATION_BYTES } from '../../signer/api/parent-ports.ts';
import { parentProxySchema } from '../../signer/api/parent-proxy.ts';
import { capitalised, code, table } from './markdown.ts';

const MEANINGS: Readonly<Record<string, string>> = {
  enclave_cid: 'CID of the enclave, as `nitro-cli run-enclave --enclave-cid` was given it',
  'ingress.tls.listen_address': 'IP address for RA-TLS clients, on this host',
  'ingress.tls.listen_port': 'TCP port; unset: `tls.listen_port`. 0 takes any free port',
  'ingress.probes.listen_address': 'IP address for `/upcheck` and `/healthcheck`',
  'ingress.probes.listen_port': 'TCP port; unset: `server.listen_port`',
  'ingress.metrics.listen_address': "IP address for the enclave's metrics",
  'ingress.metrics.listen_port': 'TCP port; unset: `metrics.listen_port`',
  'metrics.listen_address': "IP address of the parent proxy's own metrics",
  'metrics.listen_port': 'TCP port',
  'limits.max_connections_per_port':
    'Connections of one listener at a time; beyond, the oldest one without an answer goes, of the address that has most of them',
  'limits.idle_timeout_seconds': `A forwarded connection without a byte in either direction is cut; one of a client whose answer is complete after ${CLIENT_LINGERS_MS} ms`,
  'limits.connect_timeout_ms': 'One attempt to connect, to the enclave or to an endpoint, name resolution included',
  'limits.connect_retry_ms': 'How long a connect that the enclave refuses is tried again; 0: not at all',
  'limits.graceful_shutdown_timeout_seconds': `On SIGTERM: how long connections may finish; those quiet for ${DRAIN_QUIET_MS} ms end`,
  'credentials.source':
    "`aws_default_chain`: the AWS SDK's provider chain, on an instance its role; `none`: nothing listens on 7002",
  'logs.output': '`stdout`, or the absolute path of a file, appended to; SIGHUP opens it again',
  'logs.max_bytes_per_second': "Of the enclave's log; beyond it the enclave waits, and drops and counts when it has to",
};

export function parentProxyReference(): string {
  const rows = Object.entries(MEANINGS).map(([path, meaning]): [string, string] => {
    const fallback = defaultOf(path);
    return [
      `parent_proxy.${path}`,
      fallback === undefined ? meaning : `${meaning}; ${code(String(fallback))} by default`,
    ];
  });
  const metrics = Object.values(PROXY_METRICS).flatMap(({ name, type, help, labels }) => [
    `### \`${name}\``,
    '',
    `${capitalised(type)}. ${help}`,
    '',
    ...labelList(labels),
  ]);
  return `# Parent proxy

Generated from the source by \`make docs\`.

\`strongroom parent-proxy -c FILE\` runs on the parent instance of an enclave; parent-proxy/deploy has its units and its runbook.
It reads the enclave's configuration file: \`tee.platform\` (must be \`nitro\`), \`tee.nitro.egress.endpoints\`,
\`tls.listen_port\`, \`server.listen_port\`, \`metrics.listen_port\` and the \`parent_proxy\` block. Unknown members of the block are
refused, and every violation is printed with its line; the exit code is then 78. \`--check\` stops there, and prints PCR16 for this file.

## Options

${table(rows)}

## Ports of the parent

| vsock port | What the enclave finds there | Limits |
|---|---|---|
| 7000 | Takes the enclave's log: JSON lines. Each is written as \`{"source":"enclave","record":{…}}\`, what is not a JSON object as \`"text"\`, with control characters escaped | ${MAX_LOG_CONNECTIONS} connections (the newest replaces the oldest), ${MAX_LOG_LINE_BYTES} bytes a line (${MAX_WRITTEN_LOG_LINE_BYTES} as it is written), \`logs.max_bytes_per_second\` |
| 7001 | The file as it was when the parent proxy started: a 4-byte big-endian length, the bytes | ${MAX_CONFIGURATION_CONNECTIONS} connections, ${CONFIGURATION_TIMEOUT_MS} ms each, ${MAX_CONFIGURATION_BYTES} bytes |
| 7002 | \`GET /credentials\`: container-credentials JSON; 503 when there are none | ${MAX_CREDENTIALS_CONNECTIONS} connections, ${CREDENTIALS_CONNECTION_TIMEOUT_MS} ms each, ${ROLE_CREDENTIALS_TIMEOUT_MS} ms for the chain, ${MAX_REQUEST_HEAD_BYTES} bytes of request |
| \`vsock_port\` of an endpoint | TCP to its \`hostname\` and \`port\` | \`limits\` |

The parent proxy's own metrics are at \`GET /metrics\`, for ${MAX_PROXY_SCRAPERS} scrapers at a time.

## Metrics

Prometheus text. Names are stable; a series appears when it is first used. \`port\` is a vsock port, \`service\` one of
${EVERY_SERVICE}.

${metrics.join('\n')}`;
}

function labelList(labels: Readonly<Record<string, string>>): string[] {
  const lines = Object.entries(labels).map(([label, values]) =>
    values === EVERY_SERVICE || label === 'port' ? `- \`${label}\`` : `- \`${label}\`: ${values}`,
  );
  return lines.length === 0 ? [] : [...lines, ''];
}

function defaultOf(path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], parentProxySchema.parse({}));
}
