import {
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { TraceState } from '@opentelemetry/core';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { beforeEach, expect, test } from 'vitest';
import { spanRequest } from '../../lib/observability/span-exporters.ts';
import { describeAtOnce, type PlainAttributes, SCOPE } from '../../lib/observability/tracer.ts';
import { decodeTraceRequest } from '../stage/otlp-protobuf.ts';

let exporter: InMemorySpanExporter;
let provider: TracerProvider;
let ours: Tracer;
let another: Tracer;

beforeEach(() => {
  exporter = new InMemorySpanExporter();
  provider = new TracerProvider({
    resource: resourceFromAttributes(
      { 'service.name': 'users', 'deployment.environment.name': 'Größe' },
      { schemaUrl: 'https://opentelemetry.io/schemas/1.40.0' },
    ),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
    spanLimits: { attributeCountLimit: 12 },
  });
  ours = provider.getTracer(SCOPE);
  another = provider.getTracer('another', '1.2.3');
});

function described(span: Span, attributes: PlainAttributes): Span {
  describeAtOnce(span, attributes);
  return span;
}

/** The content that a receiver reads. A missing status is that of a span without one. */
function read(request: Uint8Array | undefined): unknown {
  const text = JSON.stringify(decodeTraceRequest(request ?? new Uint8Array()));
  return JSON.parse(text.replaceAll('"status":null', '"status":{"message":"","code":0}'));
}

/** Expects that the request equals that of the SDK for all spans that have ended. */
function expectAsTheSdk(): readonly ReadableSpan[] {
  const spans = exporter.getFinishedSpans();
  expect(read(spanRequest(spans))).toEqual(read(ProtobufTraceSerializer.serializeRequest(spans)));
  return spans;
}

test.each<readonly [string, PlainAttributes]>([
  ['texts, numbers and booleans', { text: 'GET', zero: 0, status: 200, port: 65535, yes: true, no: false }],
  ['texts that are not ASCII', { ß: 'Größe', emoji: '👩‍🚀', nul: '\0', 'lone surrogate': '\ud800' }],
  [
    'large numbers',
    { 'of 31 bits': 2 ** 31 - 1, 'of 32 bits': 2 ** 32 + 5, 'of 53 bits': Number.MAX_SAFE_INTEGER },
  ],
  [
    'texts of every length of a length',
    { a: '', b: 'x'.repeat(127), c: 'é'.repeat(64), d: 'y'.repeat(20_000) },
  ],
])('a span equals that of the SDK: attributes, %s', (_case, attributes) => {
  described(ours.startSpan('GET /users', { kind: SpanKind.SERVER }), attributes).end();

  expect(expectAsTheSdk()).toHaveLength(1);
});

test.each([
  ['the first of its trace', undefined],
  ['with the tracestate of a caller', { isRemote: true, traceState: new TraceState('vendor=1,other=ab') }],
  ['within another', { isRemote: false }],
])('a span equals that of the SDK: %s', (_case, parent) => {
  const ids = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
  const caller = { ...ids, traceFlags: TraceFlags.SAMPLED, ...parent };
  const context = parent ? trace.setSpanContext(ROOT_CONTEXT, caller) : ROOT_CONTEXT;
  ours.startSpan('SELECT users', { kind: SpanKind.CLIENT }, context).end();

  expect(expectAsTheSdk()).toHaveLength(1);
});

test.each([
  ['in 2106, beyond 32 bits of seconds', [2 ** 32 + 7, 999_999_999], [2 ** 32 + 8, 0]],
  ['where the lower half is full', [1_764_000_000, 0], [1_764_000_000, 999_999_999]],
] as const)('a span is sent as the SDK would send it: to the nanosecond, %s', (_case, begun, ended) => {
  const options = { kind: SpanKind.SERVER, ...(begun && { startTime: [...begun] as [number, number] }) };
  ours.startSpan('GET', options).end(ended && [...ended]);

  expect(expectAsTheSdk()).toHaveLength(1);
});

test('a span equals that of the SDK: a failed span, and a span with too many attributes', () => {
  ours.startSpan('GET').setStatus({ code: SpanStatusCode.ERROR }).end();
  ours
    .startSpan('GET')
    .setAttributes(Object.fromEntries(Array.from({ length: 15 }, (_, n) => [`a${n}`, n])))
    .end();

  expect(expectAsTheSdk()).toHaveLength(2);
});

test('shared attributes are encoded in each span', () => {
  const shared = Object.freeze({ 'db.query.text': 'select 1', 'server.port': 5432 });
  for (const name of ['first', 'second', 'third']) described(ours.startSpan(name), shared).end();

  expect(expectAsTheSdk()).toHaveLength(3);
});

test('spans of instrumentations are in the same request, with their events, links and arrays', () => {
  ours.startSpan('GET').end();
  const fetched = another.startSpan('fetch', { attributes: { list: ['a', 'b'], negative: -1, part: 0.5 } });
  fetched.recordException(new Error('refused'));
  fetched.end();
  ours.startSpan('SELECT users').end();

  const spans = exporter.getFinishedSpans();
  const { resourceSpans } = read(spanRequest(spans)) as { resourceSpans: unknown[] };
  const [own, others] = [
    spans.filter(({ name }) => name !== 'fetch'),
    spans.filter(({ name }) => name === 'fetch'),
  ].map((some) => read(ProtobufTraceSerializer.serializeRequest(some)) as { resourceSpans: unknown[] });
  expect(resourceSpans).toEqual([...(own?.resourceSpans ?? []), ...(others?.resourceSpans ?? [])]);
});
