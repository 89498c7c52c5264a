import { type Attributes, type AttributeValue, type HrTime, SpanStatusCode } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** `SpanFlags`: it is known whether the parent is remote; the parent is remote. */
const [KNOWN, REMOTE] = [0x100, 0x200];

/**
 * One of the service's spans as field 2 of `ScopeSpans`. It has no events, no links and no status message, and only
 * attributes that `anyValue` can encode.
 *
 * @see opentelemetry-proto, trace/v1/trace.proto
 */
export function spanMessage(span: ReadableSpan): Bytes {
  const { traceState } = span.spanContext();
  const { droppedAttributesCount: dropped, status } = span;
  let bytes = fixedFields(span) + text(5, span.name) + number(6, span.kind + 1);
  bytes += attributesField(9, span.attributes);
  if (traceState) bytes += text(3, traceState.serialize());
  if (dropped > 0) bytes += number(10, dropped);
  if (status.code !== SpanStatusCode.UNSET) bytes += delimited(15, number(3, status.code));
  return delimited(2, bytes);
}

/** The fields 1, 2, 7, 8, 16 and 4 of a fixed size, each with its tag, and an id with its length. */
const fixed = Buffer.alloc(62);
fixed.set([0x0a, 16], 0);
fixed.set([0x12, 8], 18);
fixed.set([0x39], 28);
fixed.set([0x41], 37);
fixed.set([0x85, 0x01], 46);
fixed.set([0x22, 8], 52);

/** The ids of trace and span, the times, the flags and, if there is one, the id of the parent. */
function fixedFields(span: ReadableSpan): Bytes {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const parent = span.parentSpanContext;
  fixed.write(traceId, 2, 'hex');
  fixed.write(spanId, 20, 'hex');
  writeTime(29, span.startTime);
  writeTime(38, span.endTime);
  fixed.writeUInt32LE(traceFlags | KNOWN | (parent?.isRemote ? REMOTE : 0), 48);
  if (!parent) return fixed.toString('latin1', 0, 52);
  fixed.write(parent.spanId, 54, 'hex');
  return fixed.toString('latin1');
}

function writeTime(at: number, [seconds, nanoseconds]: HrTime): void {
  fixed.writeBigUInt64LE(BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds), at);
}

const keys = new Map<string, Bytes>();
const shared = new WeakMap<Attributes, Bytes>();

/** Attributes as a repeated field of `KeyValue`. Frozen ones are encoded once. */
export function attributesField(field: number, attributes: Attributes): Bytes {
  const known = shared.get(attributes);
  if (known !== undefined) return known;
  let bytes = '';
  for (const key in attributes) {
    bytes += delimited(field, keyOf(key) + delimited(2, anyValue(attributes[key])));
  }
  if (Object.isFrozen(attributes)) shared.set(attributes, bytes);
  return bytes;
}

/** There are only a few dozen keys. */
function keyOf(key: string): Bytes {
  const known = keys.get(key);
  if (known !== undefined) return known;
  const bytes = text(1, key);
  keys.set(key, bytes);
  return bytes;
}

/** `AnyValue`: a text, a boolean or a non-negative integer. */
function anyValue(value: AttributeValue | undefined): Bytes {
  if (typeof value === 'number') return number(3, value);
  if (typeof value === 'boolean') return number(2, Number(value));
  return text(1, String(value));
}

/**
 * Protobuf as text, one character per byte. V8 joins short texts faster than JavaScript fills a buffer, and constant
 * parts stay texts. `latin1` writes such a text unchanged.
 */
type Bytes = string;

const ASCII = /^[\0-\x7f]*$/;

/** A non-negative integer, in groups of seven bits. */
export function varint(number: number): Bytes {
  let [bytes, rest] = ['', number];
  while (rest > 0x7f) {
    bytes += String.fromCharCode((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return bytes + String.fromCharCode(rest);
}

/** A field with a length: a nested message, or a text. Only fields 1 to 15, whose tag is one byte. */
export function delimited(field: number, bytes: Bytes): Bytes {
  return String.fromCharCode((field << 3) | 2) + varint(bytes.length) + bytes;
}

/** A text as a field. */
export function text(field: number, value: string): Bytes {
  return delimited(field, ASCII.test(value) ? value : Buffer.from(value).toString('latin1'));
}

function number(field: number, value: number): Bytes {
  return String.fromCharCode(field << 3) + varint(value);
}
