// What the parent proxy takes from the enclave's configuration file: the declared egress, the enclave's ports and the
// `parent_proxy` block. The rest of the file is the enclave's to judge; here it is only bytes.

import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { z } from 'zod';
import { renderPath, type Violation, yamlViolations } from '../common/command-line/violations.ts';
import { explainIssue } from '../common/formats/issues.ts';
import { extendedOnce } from '../common/formats/register.ts';
import { decodeYaml, parseStrictYaml, type StrictDocument } from '../common/formats/yaml.ts';
import { type EgressEndpoint, egressEndpointsSchema } from '../signer/api/egress.ts';
import { MAX_CONFIGURATION_BYTES } from '../signer/api/parent-ports.ts';
import { parentProxySchema } from '../signer/api/parent-proxy.ts';

export const INGRESS = ['tls', 'probes', 'metrics'] as const;
export type Ingress = (typeof INGRESS)[number];

export interface ProxyAddress {
  readonly host: string;
  readonly port: number;
}

export interface ProxyConfiguration {
  /** The file, as it is: the enclave measures these bytes. */
  readonly bytes: Buffer;
  /** SHA-384 of the bytes, hex, and what PCR16 of the enclave becomes with them. */
  readonly digest: string;
  readonly pcr16: string;
  readonly endpoints: readonly EgressEndpoint[];
  readonly enclavePorts: Readonly<Record<Ingress, number>>;
  readonly ingress: Readonly<Record<Ingress, ProxyAddress>>;
  readonly metrics: ProxyAddress;
  readonly options: z.output<typeof parentProxySchema>;
}

export type LoadedProxy =
  | { readonly ok: true; readonly configuration: ProxyConfiguration }
  | { readonly ok: false; readonly violations: readonly Violation[] };

const MUST_BE_PORT = 'must be an integer from 1 to 65535: in an enclave the parent proxy has to know the port';
const enclavePort = z.int(MUST_BE_PORT).min(1, MUST_BE_PORT).max(65_535, MUST_BE_PORT);

/** The defaults of the ports are those of the server's option table. */
const fileSchema = z.object({
  platform: z.literal('nitro', 'must be nitro: without an enclave there is nothing to proxy'),
  endpoints: egressEndpointsSchema.default([]),
  tls: enclavePort.default(9443),
  probes: enclavePort.default(9000),
  metrics: enclavePort.default(3000),
  parentProxy: parentProxySchema,
});
type FileValues = z.output<typeof fileSchema>;

const PATHS: Readonly<Record<keyof FileValues, readonly string[]>> = {
  platform: ['tee', 'platform'],
  endpoints: ['tee', 'nitro', 'egress', 'endpoints'],
  tls: ['tls', 'listen_port'],
  probes: ['server', 'listen_port'],
  metrics: ['metrics', 'listen_port'],
  parentProxy: ['parent_proxy'],
};
const REMEDY = 'correct it; docs/reference/parent-proxy.md says what the parent proxy reads';

function faultOf({ length }: Uint8Array): string {
  if (length === 0) return 'is empty';
  return length > MAX_CONFIGURATION_BYTES ? `has ${length} bytes, too many for an enclave` : 'is not UTF-8';
}

export function readProxyConfiguration(bytes: Buffer, name: string): LoadedProxy {
  const text = bytes.length === 0 ? undefined : decodeYaml(bytes, MAX_CONFIGURATION_BYTES);
  if (text === undefined) {
    const remedy = `make it UTF-8, not empty and at most ${MAX_CONFIGURATION_BYTES} bytes`;
    return refused([{ path: 'the file', problem: faultOf(bytes), remedy, origin: name }]);
  }
  const document = parseStrictYaml(text);
  if ('problems' in document) return refused(yamlViolations(document.problems, name));
  return readDocument(bytes, document, name);
}

function readDocument(bytes: Buffer, document: StrictDocument, name: string): LoadedProxy {
  const members = Object.entries(PATHS).map(([member, path]) => [member, valueAt(document.value, path)] as const);
  const parsed = fileSchema.safeParse(Object.fromEntries(members), { error: explainIssue });
  const violation = (path: readonly PropertyKey[], problem: string): Violation => ({
    path: renderPath(path),
    problem,
    remedy: REMEDY,
    origin: `${name} line ${document.lineAt(path)}`,
  });
  if (!parsed.success) {
    return refused(
      parsed.error.issues.flatMap((issue) => {
        const [member, ...within] = issue.path;
        const path = [...PATHS[member as keyof FileValues], ...within];
        return issue.code === 'unrecognized_keys'
          ? issue.keys.map((key) => violation([...path, key], 'is not a member of this object'))
          : [violation(path, issue.message)];
      }),
    );
  }
  const found = [...takenVsockPorts(parsed.data), ...sharedTcpPorts(parsed.data)];
  if (found.length > 0) return refused(found.map(({ path, problem }) => violation(path, problem)));
  return { ok: true, configuration: configurationOf(bytes, parsed.data) };
}

function configurationOf(bytes: Buffer, { endpoints, parentProxy, ...values }: FileValues): ProxyConfiguration {
  const digest = createHash('sha384').update(bytes).digest();
  const at = (ingress: Ingress): ProxyAddress => {
    const { listen_address: host, listen_port: port = values[ingress] } = parentProxy.ingress[ingress];
    return { host, port };
  };
  return {
    bytes,
    digest: digest.toString('hex'),
    pcr16: extendedOnce(digest).toString('hex'),
    endpoints,
    enclavePorts: { tls: values.tls, probes: values.probes, metrics: values.metrics },
    ingress: { tls: at('tls'), probes: at('probes'), metrics: at('metrics') },
    metrics: { host: parentProxy.metrics.listen_address, port: parentProxy.metrics.listen_port },
    options: parentProxy,
  };
}

interface ConfigurationProblem {
  readonly path: readonly PropertyKey[];
  readonly problem: string;
}

/** specification/operating.md#startup-failures, 11; and the enclave's listeners among themselves. */
function takenVsockPorts({ endpoints, tls, probes, metrics }: FileValues): ConfigurationProblem[] {
  const listeners: readonly (readonly [Ingress, number])[] = [
    ['tls', tls],
    ['probes', probes],
    ['metrics', metrics],
  ];
  const shared = listeners.flatMap(([ingress, port], position) =>
    listeners.slice(0, position).some(([, earlier]) => earlier === port)
      ? [{ path: PATHS[ingress], problem: 'is the port of another listener of the enclave' }]
      : [],
  );
  const taken = endpoints.flatMap(({ vsock_port }, index) =>
    listeners.some(([, port]) => port === vsock_port)
      ? [{ path: [...PATHS.endpoints, index, 'vsock_port'], problem: 'is the ingress port of a listener' }]
      : [],
  );
  return [...shared, ...taken];
}

function sharedTcpPorts(values: FileValues): ConfigurationProblem[] {
  const { ingress, metrics } = values.parentProxy;
  const listeners = [
    ...INGRESS.map((name) => ({
      path: [...PATHS.parentProxy, 'ingress', name],
      host: ingress[name].listen_address,
      port: ingress[name].listen_port ?? values[name],
    })),
    { path: [...PATHS.parentProxy, 'metrics'], host: metrics.listen_address, port: metrics.listen_port },
  ];
  return listeners.flatMap((later, position) =>
    listeners.slice(0, position).some((earlier) => overlap(earlier, later))
      ? [{ path: later.path, problem: 'listens on the address and port of another listener of the parent proxy' }]
      : [],
  );
}

function overlap(left: ProxyAddress, right: ProxyAddress): boolean {
  const anywhere = (host: string): boolean => /^[0.:]+$/.test(host) || isIPv6(host); // `::` may hold the IPv4 port too
  return (
    left.port !== 0 &&
    left.port === right.port &&
    (left.host === right.host || anywhere(left.host) || anywhere(right.host))
  );
}

/** A section that is null or missing has no members; one that is no section is refused by the schema. */
function valueAt(value: unknown, path: readonly string[]): unknown {
  const [head, ...rest] = path;
  if (head === undefined) return value ?? undefined;
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) return value;
  return valueAt(Object.hasOwn(value, head) ? (value as Record<string, unknown>)[head] : undefined, rest);
}

function refused(violations: readonly Violation[]): LoadedProxy {
  return { ok: false, violations };
}
