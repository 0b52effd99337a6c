// Variables that Kubernetes injects into every container for the Services of its namespace (Kubernetes, "Environment
// variables" under Service): those of a Service whose name begins with `svc` begin with SVC_, as options do. Only
// what Kubernetes writes is taken for that: a mistyped option that ends in _PORT must not pass.

/** `SVC_SERVICE_HOST`, `SVC_FOO_SERVICE_PORT_HTTP`: no option has such a name. */
const SERVICE = /^SVC(?:_[A-Z0-9_]+)?_SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$/;
/** The older form, after Docker links: `SVC_PORT`, `SVC_FOO_PORT_80_TCP_ADDR`. */
const LINK = /^SVC(?:_[A-Z0-9_]+)?_PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/;
const PORT = /^(?<service>SVC(?:_[A-Z0-9_]+)?)_PORT$/;

export function isInjectedByKubernetes(variable: string, env: Readonly<Record<string, string | undefined>>): boolean {
  if (SERVICE.test(variable) || LINK.test(variable)) return true;
  const service = PORT.exec(variable)?.groups?.['service'];
  if (service === undefined) return false;
  return env[`${service}_SERVICE_HOST`] !== undefined || /^(?:tcp|udp|sctp):\/\//.test(env[variable] ?? '');
}
