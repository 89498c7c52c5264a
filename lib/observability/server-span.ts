import {
  type Attributes,
  context,
  type Histogram,
  metrics,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { GatewayEvent, GatewayResult } from '../http/gateway.ts';
import { redactedMessage, redactedPath, redactedText } from './redaction.ts';
import { requestAttributes } from './request-attributes.ts';
import { SCOPE, tracer } from './tracer.ts';

/** RFC 9110 section 7.2: an IP literal in brackets or a name, and a port. */
const HOST = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i;

/**
 * The spans of requests. Each continues the caller's trace. With metrics, the duration of each request is recorded, too.
 *
 * @see OpenTelemetry semantic conventions for HTTP spans and metrics, stable since 1.23
 */
export class ServerSpans {
  readonly #durations: Histogram | undefined;

  constructor(exportsMetrics: boolean) {
    this.#durations = exportsMetrics ? createDurations() : undefined;
  }

  /** Serves a request within its span. `route` is the path as declared, undefined if no endpoint serves the request. */
  within(
    event: GatewayEvent,
    route: string | undefined,
    serve: () => Promise<GatewayResult>,
  ): Promise<GatewayResult> {
    const begun = performance.now();
    const attributes = requestAttributes(event);
    const method = attributes['http.request.method'];
    const name = method === '_OTHER' ? 'HTTP' : method;
    const caller = propagation.extract(ROOT_CONTEXT, event.headers);
    const span = tracer.startSpan(route ? `${name} ${route}` : name, { kind: SpanKind.SERVER }, caller);
    const served = async () => {
      const result = await serve();
      const failed = result.statusCode >= 500;
      const shared: Attributes = {
        ...attributes,
        ...(route && { 'http.route': route }),
        'http.response.status_code': result.statusCode,
        ...(failed && { 'error.type': String(result.statusCode) }),
      };
      this.#durations?.record((performance.now() - begun) / 1000, shared);
      if (!span.isRecording()) return result;
      if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
      span.setAttributes({
        ...shared,
        'url.path': redactedPath(event.rawPath),
        ...(method === '_OTHER' && {
          'http.request.method_original': redactedText(event.requestContext.http.method),
        }),
        ...clientOf(event),
      });
      span.end();
      return result;
    };
    const isObserved = span.isRecording() || this.#durations !== undefined;
    return context.with(trace.setSpan(caller, span), isObserved ? served : serve);
  }
}

function clientOf({ headers }: GatewayEvent): Attributes {
  const [, literal, name, port] = HOST.exec(headers.host ?? '') ?? [];
  const address = literal ?? name;
  const agent = headers['user-agent'];
  return {
    ...(address && { 'server.address': redactedMessage(address) }),
    ...(port && { 'server.port': Number(port) }),
    // Some clients put an email address into it.
    ...(agent && { 'user_agent.original': redactedText(agent) }),
  };
}

function createDurations(): Histogram {
  return metrics.getMeter(SCOPE).createHistogram('http.server.request.duration', {
    description: 'Duration of HTTP server requests.',
    unit: 's',
    advice: {
      explicitBucketBoundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
    },
  });
}
