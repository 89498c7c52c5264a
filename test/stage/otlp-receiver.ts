import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from './listening.ts';
import { until } from './until.ts';

/** Flat attributes. */
export type Attributes = Readonly<Record<string, unknown>>;

export type ReceivedSpan = {
  readonly name: string;
  readonly kind: 'INTERNAL' | 'SERVER' | 'CLIENT' | 'PRODUCER' | 'CONSUMER' | undefined;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly status: 'UNSET' | 'OK' | 'ERROR' | undefined;
  readonly attributes: Attributes;
  readonly resource: Attributes;
  /** In nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
};

/** A received point of a metric: the value of a number, the count of a histogram. */
export type ReceivedPoint = {
  readonly metric: string;
  readonly instrument: 'counter' | 'up-down counter' | 'gauge' | 'histogram';
  readonly unit: string;
  readonly attributes: Attributes;
  readonly value: number;
  readonly sum: number | undefined;
};

export type Export = {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
};

type Answer = (response: ServerResponse) => void;

const KINDS = [undefined, 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const;
const STATUSES = ['UNSET', 'OK', 'ERROR'] as const;

const succeed: Answer = (response) => response.writeHead(200).end();

/** Starts a receiver of OTLP over HTTP on a port of 127.0.0.1. It reads JSON alone. */
export async function startOtlpReceiver() {
  const received: Export[] = [];
  let answer = succeed;
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray().catch(() => undefined);
    if (!chunks) return;
    const { url: path = '', headers } = request;
    received.push({ path, headers, body: Buffer.concat(chunks) });
    answer(response);
  });
  const { port } = await listen(server);

  const spans = () => received.filter(({ path }) => path === '/v1/traces').flatMap(spansOf);

  return {
    endpoint: `http://127.0.0.1:${port}`,
    /** The settings of a service that sends its spans here. */
    variables: {
      SVC_OTEL_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    },
    port,
    received,
    spans,
    points: () => received.filter(({ path }) => path === '/v1/metrics').flatMap(pointsOf),
    /** All spans of the trace as soon as there are `count` of them. */
    untilTrace: (traceId: string, count: number) =>
      until(`${count} spans of the trace`, () => {
        const found = spans().filter((span) => span.traceId === traceId);
        return found.length >= count && found;
      }),
    answer(otherwise: Answer) {
      answer = otherwise;
    },
    answerNormally() {
      answer = succeed;
    },
    stop: async () => server.close().closeAllConnections(),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the tests check the content
type Message = any;

function spansOf({ body }: Export): ReceivedSpan[] {
  const { resourceSpans = [] } = JSON.parse(body.toString());
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }: Message) =>
    scopeSpans.flatMap(({ spans = [] }: Message) =>
      spans.map(
        (span: Message): ReceivedSpan => ({
          name: span.name,
          kind: KINDS[Number(span.kind ?? 0)],
          traceId: span.traceId,
          spanId: span.spanId,
          parentSpanId: span.parentSpanId || undefined,
          status: STATUSES[Number(span.status?.code ?? 0)],
          attributes: attributesOf(span.attributes),
          resource: attributesOf(resource?.attributes),
          start: BigInt(span.startTimeUnixNano),
          end: BigInt(span.endTimeUnixNano),
        }),
      ),
    ),
  );
}

function pointsOf({ body }: Export): ReceivedPoint[] {
  const { resourceMetrics = [] } = JSON.parse(body.toString());
  return resourceMetrics.flatMap(({ scopeMetrics = [] }: Message) =>
    scopeMetrics.flatMap(({ metrics = [] }: Message) =>
      metrics.flatMap(({ name: metric, unit, gauge, sum, histogram }: Message) => {
        const { dataPoints = [] } = gauge ?? sum ?? histogram ?? {};
        return dataPoints.map(
          (point: Message): ReceivedPoint => ({
            metric,
            instrument: instrumentOf({ gauge, sum, histogram }),
            unit,
            attributes: attributesOf(point.attributes),
            value: Number(point.count ?? point.asInt ?? point.asDouble),
            sum: point.sum,
          }),
        );
      }),
    ),
  );
}

function instrumentOf({ gauge, sum, histogram }: Message): ReceivedPoint['instrument'] {
  if (gauge) return 'gauge';
  if (histogram) return 'histogram';
  return sum.isMonotonic ? 'counter' : 'up-down counter';
}

function attributesOf(pairs: Message[] = []): Attributes {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, plainValue(value)]));
}

function plainValue({ stringValue, boolValue, intValue, doubleValue, arrayValue }: Message): unknown {
  if (intValue !== undefined) return Number(intValue);
  if (arrayValue !== undefined) return (arrayValue.values ?? []).map(plainValue);
  return stringValue ?? boolValue ?? doubleValue;
}
