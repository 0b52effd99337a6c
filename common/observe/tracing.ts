// One span per request with children for its parts, exported over OTLP gRPC. The packages are loaded only when tracing
// is on. Span attributes hold no secrets.

import type { Span as OtelSpan } from '@opentelemetry/api';
import { inTime } from '../flow/in-time.ts';
import type { Log } from './log.ts';

export interface Span {
  child(name: string): Span;
  setAttribute(name: string, value: string | number): void;
  end(): void;
}

export interface Tracing {
  /**
   * Each request starts a trace of its own. If a client's `traceparent` counted, the client would choose what is
   * sampled.
   */
  startRequest(request: TracedRequest): Span;
  /** A collector that does not answer costs at most `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}

interface TracedRequest {
  readonly method: string;
  readonly route: string | undefined;
}

interface TracingOptions {
  readonly endpoint: string;
  readonly serviceName: string;
  /** PEM; the process-wide roots unless given. */
  readonly authorities?: readonly string[] | undefined;
}

export async function openTracing(options: TracingOptions, log: Log): Promise<Tracing> {
  const [api, sdk, exporter, resources] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-grpc'),
    import('@opentelemetry/resources'),
  ]);
  const exported = { url: options.endpoint, ...(await vouchedCredentials(options)) };
  const processor = new sdk.BatchSpanProcessor({ exporter: new exporter.OTLPTraceExporter(exported) });
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({ 'service.name': options.serviceName }),
    spanProcessors: [processor],
  });
  api.diag.setLogger(diagnosticsTo(log), { logLevel: api.DiagLogLevel.WARN });
  const tracer = provider.getTracer('strongroom');
  // One clock that only goes forward: by the system's clock a child could begin after its parent's end.
  const wrap = (span: OtelSpan, now: () => number): Span => ({
    child: (name) => wrap(tracer.startSpan(name, { startTime: now() }, api.trace.setSpan(api.ROOT_CONTEXT, span)), now),
    setAttribute: (name, value) => void span.setAttribute(name, value),
    end: () => span.end(now()),
  });
  return {
    startRequest({ method, route }) {
      // Semantic conventions for HTTP servers: a low-cardinality name, without the path where no route is known.
      const attributes = { 'http.request.method': method, ...(route === undefined ? {} : { 'http.route': route }) };
      const name = route === undefined ? method : `${method} ${route}`;
      const startedAt = Date.now() - performance.now();
      const now = (): number => startedAt + performance.now();
      const options = { kind: api.SpanKind.SERVER, attributes, startTime: now() };
      return wrap(tracer.startSpan(name, options, api.ROOT_CONTEXT), now);
    },
    close: (timeoutMs) => inTime(provider.shutdown(), timeoutMs, () => undefined).catch(() => undefined),
  };
}

async function vouchedCredentials({ endpoint, authorities }: TracingOptions) {
  if (authorities === undefined || new URL(endpoint).protocol !== 'https:') return {};
  const { credentials } = await import('@grpc/grpc-js');
  return { credentials: credentials.createSsl(Buffer.from(authorities.join('\n'))) };
}

function diagnosticsTo(log: Log): Record<'verbose' | 'debug' | 'info' | 'warn' | 'error', (message: string) => void> {
  const warn = (message: string): void => log.warn({ detail: message }, 'tracing export failed');
  const silent = (): void => undefined;
  return { verbose: silent, debug: silent, info: silent, warn, error: warn };
}
