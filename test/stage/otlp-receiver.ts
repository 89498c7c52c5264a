import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from './listening.ts';
import { decodeTraceRequest } from './otlp-protobuf.ts';
import { until } from './until.ts';

/** Flat attributes. An integer is a number in either encoding. */
export type Attributes = Readonly<Record<string, unknown>>;

/** A span as it arrived. */
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

/** A request that an exporter made. */
export type Export = {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
};

type Answer = (response: ServerResponse) => void;

const KINDS = [undefined, 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const;
const STATUSES = ['UNSET', 'OK', 'ERROR'] as const;

const succeed: Answer = (response) => response.writeHead(200).end();

/** Starts a receiver of OTLP over HTTP on a port of 127.0.0.1: of spans in protobuf and in JSON, of metrics in JSON. */
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
    port,
    /** All received requests. */
    received,
    spans,
    points: () => received.filter(({ path }) => path === '/v1/metrics').flatMap(pointsOf),
    /** All spans of the trace as soon as there are `count` of them. */
    untilTrace: (traceId: string, count: number) =>
      until(`${count} spans of the trace`, () => {
        const found = spans().filter((span) => span.traceId === traceId);
        return found.length >= count && found;
      }),
    /** Responds in this way from now on. */
    answer(otherwise: Answer) {
      answer = otherwise;
    },
    /** Accepts everything from now on. */
    answerNormally() {
      answer = succeed;
    },
    stop: async () => server.close().closeAllConnections(),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the tests check the content
type Message = any;

function spansOf({ body, headers }: Export): ReceivedSpan[] {
  const { resourceSpans = [] } = messageOf(body, headers);
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

function messageOf(body: Buffer, headers: Export['headers']): Message {
  return headers['content-type'] === 'application/json'
    ? JSON.parse(body.toString())
    : decodeTraceRequest(body);
}

function attributesOf(pairs: Message[] = []): Attributes {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, plainValue(value)]));
}

function plainValue({ stringValue, boolValue, intValue, doubleValue, arrayValue }: Message): unknown {
  if (intValue !== undefined) return Number(intValue);
  if (arrayValue !== undefined) return (arrayValue.values ?? []).map(plainValue);
  return stringValue ?? boolValue ?? doubleValue;
}
