// One span per request with children for its parts, exported over OTLP gRPC. The exporter's packages are loaded only
// when tracing is on; otherwise the signing path carries `undefined` and pays nothing. Span attributes hold no secrets.

import type { Span as OtelSpan, Tracer } from '@opentelemetry/api';
import type { Log } from './log.ts';

export interface Span {
  child(name: string): Span;
  setAttribute(name: string, value: string | number): void;
  end(): void;
}

export interface Tracing {
  startRequest(name: string): Span;
  /** Send what is buffered and stop; a collector that does not answer costs at most `timeoutMs`. */
  close(timeoutMs: number): Promise<void>;
}

export interface TracingOptions {
  /** OTLP gRPC URL of the collector. */
  readonly endpoint: string;
  readonly serviceName: string;
}

export async function openTracing(options: TracingOptions, log: Log): Promise<Tracing> {
  const [api, sdk, exporter, resources] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-grpc'),
    import('@opentelemetry/resources'),
  ]);
  const processor = new sdk.BatchSpanProcessor({
    exporter: new exporter.OTLPTraceExporter({ url: options.endpoint }),
  });
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({ 'service.name': options.serviceName }),
    spanProcessors: [processor],
  });
  api.diag.setLogger(diagnosticsTo(log), { logLevel: api.DiagLogLevel.WARN });
  const tracer = provider.getTracer('strongroom');
  const wrap = (span: OtelSpan): Span => ({
    child: (name) => wrap(startSpan(tracer, name, api.trace.setSpan(api.ROOT_CONTEXT, span))),
    setAttribute: (name, value) => void span.setAttribute(name, value),
    end: () => span.end(),
  });
  return {
    startRequest: (name) => wrap(startSpan(tracer, name, api.ROOT_CONTEXT)),
    async close(timeoutMs) {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, timeoutMs);
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
}

function startSpan(tracer: Tracer, name: string, parent: Parameters<Tracer['startSpan']>[2]): OtelSpan {
  return tracer.startSpan(name, {}, parent);
}

/** The exporter's complaints, as warnings of ours. */
function diagnosticsTo(log: Log): Record<'verbose' | 'debug' | 'info' | 'warn' | 'error', (message: string) => void> {
  const warn = (message: string): void => log.warn({ detail: message }, 'tracing export failed');
  const silent = (): void => undefined;
  return { verbose: silent, debug: silent, info: silent, warn, error: warn };
}
