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
import type { GatewayEvent, GatewayResult } from '../gateway.ts';
import { redactedMessage, redactedPath, redactedText } from './redaction.ts';

const SCOPE = 'user-management-service';

/** The methods that semantic conventions know; another one would make an endless number of span names. */
const KNOWN_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];

/** RFC 9110 section 7.2: an IP literal in brackets or a name, and a port. */
const HOST = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i;

const tracer = trace.getTracer(SCOPE);
let requestDuration: Histogram | undefined;

/**
 * Serves a request within a span of its own, which continues the caller's trace. `route` is the path as
 * declared, undefined where no endpoint answers.
 *
 * @see OpenTelemetry semantic conventions for HTTP spans and metrics, stable since 1.23
 */
export async function withinServerSpan(
  event: GatewayEvent,
  route: string | undefined,
  serve: () => Promise<GatewayResult>,
): Promise<GatewayResult> {
  const begun = performance.now();
  const { method } = event.requestContext.http;
  const name = KNOWN_METHODS.includes(method) ? method : 'HTTP';
  const shared: Attributes = {
    'http.request.method': name === 'HTTP' ? '_OTHER' : name,
    'url.scheme': schemeOf(event),
  };
  if (route) shared['http.route'] = route;

  const attributes: Attributes = {
    ...shared,
    'url.path': redactedPath(event.rawPath),
    ...(name === 'HTTP' && { 'http.request.method_original': redactedText(method) }),
    ...clientOf(event),
  };
  const parent = propagation.extract(ROOT_CONTEXT, event.headers);
  const span = tracer.startSpan(
    route ? `${name} ${route}` : name,
    { kind: SpanKind.SERVER, attributes },
    parent,
  );
  const result = await context.with(trace.setSpan(parent, span), serve);

  const outcome: Attributes = { 'http.response.status_code': result.statusCode };
  if (result.statusCode >= 500) {
    outcome['error.type'] = String(result.statusCode);
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.setAttributes(outcome).end();
  durations().record((performance.now() - begun) / 1000, { ...shared, ...outcome });
  return result;
}

/** API Gateway and balancers, which speak TLS for us, tell so. */
function schemeOf({ headers }: GatewayEvent): string {
  return headers['x-forwarded-proto'] === 'https' ? 'https' : 'http';
}

function clientOf({ headers }: GatewayEvent): Attributes {
  const [, literal, name, port] = HOST.exec(headers.host ?? '') ?? [];
  const address = literal ?? name;
  const agent = headers['user-agent'];
  return {
    ...(address && { 'server.address': redactedMessage(address) }),
    ...(port && { 'server.port': Number(port) }),
    // Some name whom to write to.
    ...(agent && { 'user_agent.original': redactedText(agent) }),
  };
}

/** Made at the first request: a meter that is asked before the SDK has started records nothing. */
function durations(): Histogram {
  requestDuration ??= metrics.getMeter(SCOPE).createHistogram('http.server.request.duration', {
    description: 'Duration of HTTP server requests.',
    unit: 's',
    advice: {
      explicitBucketBoundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
    },
  });
  return requestDuration;
}
