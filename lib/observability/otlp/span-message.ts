import { type Attributes, type AttributeValue, type HrTime, SpanStatusCode } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { type Bytes, delimited, number, text, varint } from './protobuf-text.ts';

/** A span that is ready to be written. */
export type SpanMessage = {
  readonly size: number;
  /** Writes the span at `at`, and returns the position after it. */
  write(buffer: Buffer, at: number): number;
};

/** Size of the ids of trace and span, the two times and the flags, each with its tag. */
const FIXED = 18 + 10 + 9 + 9 + 6;
const PARENT = 10;

/** `SpanFlags`: it is known whether the parent is remote; the parent is remote. */
const [KNOWN, REMOTE] = [0x100, 0x200];

/**
 * One of the service's spans as field 2 of `ScopeSpans`. It has no events, no links and no status message, and only
 * attributes that `anyValue` can encode.
 *
 * @see opentelemetry-proto, trace/v1/trace.proto
 */
export function spanMessage(span: ReadableSpan): SpanMessage {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const { parentSpanContext: parent, droppedAttributesCount: dropped } = span;
  const rest = restOf(span, traceState?.serialize(), dropped);
  const length = FIXED + (parent ? PARENT : 0) + rest.length;
  const head = `\x12${varint(length)}`;

  return {
    size: head.length + length,
    write(buffer, begin) {
      let at = begin + buffer.write(head, begin, 'latin1');
      at = writeId(buffer, at, 1, traceId);
      at = writeId(buffer, at, 2, spanId);
      if (parent) at = writeId(buffer, at, 4, parent.spanId);
      at = writeTime(buffer, at, 7, span.startTime);
      at = writeTime(buffer, at, 8, span.endTime);
      at = buffer.writeUInt16LE(FLAGS, at);
      at = buffer.writeUInt32LE(traceFlags | KNOWN | (parent?.isRemote ? REMOTE : 0), at);
      return at + buffer.write(rest, at, 'latin1');
    },
  };
}

/** The tag of field 16, 32 bits. */
const FLAGS = 0x01_85;

function restOf(span: ReadableSpan, traceState: string | undefined, dropped: number): Bytes {
  let bytes = text(5, span.name) + number(6, span.kind + 1) + attributesField(9, span.attributes);
  if (traceState) bytes += text(3, traceState);
  if (dropped > 0) bytes += number(10, dropped);
  if (span.status.code !== SpanStatusCode.UNSET) bytes += delimited(15, number(3, span.status.code));
  return bytes;
}

function writeId(buffer: Buffer, at: number, field: number, hex: string): number {
  buffer[at] = (field << 3) | 2;
  buffer[at + 1] = hex.length / 2;
  return at + 2 + buffer.write(hex, at + 2, 'hex');
}

/** Writes nanoseconds as 64 bits. 1e9 is 2^9 times a number by which seconds can be multiplied without loss. */
function writeTime(buffer: Buffer, at: number, field: number, [seconds, nanoseconds]: HrTime): number {
  const multiple = seconds * (1e9 / 2 ** 9);
  const low = (multiple % 2 ** 23) * 2 ** 9 + nanoseconds;
  buffer[at] = (field << 3) | 1;
  buffer.writeUInt32LE(low % 2 ** 32, at + 1);
  return buffer.writeUInt32LE(Math.floor(multiple / 2 ** 23) + Math.floor(low / 2 ** 32), at + 5);
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
