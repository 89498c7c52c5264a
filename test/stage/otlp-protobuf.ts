/**
 * A message: its name in OTLP/JSON and its type by field number, with `[]` if it is repeated.
 *
 * @see https://github.com/open-telemetry/opentelemetry-proto
 */
type Form = { readonly [field: number]: readonly [name: string, type: Type | (() => Form), repeated?: '[]'] };
type Type = 'string' | 'hex' | 'integer' | 'fixed' | 'fixed32' | 'double' | 'bool' | 'ignored';

const ANY_VALUE: Form = {
  1: ['stringValue', 'string'],
  2: ['boolValue', 'bool'],
  3: ['intValue', 'integer'],
  4: ['doubleValue', 'double'],
  5: ['arrayValue', () => ({ 1: ['values', () => ANY_VALUE, '[]'] })],
};
const KEY_VALUE: Form = { 1: ['key', 'string'], 2: ['value', () => ANY_VALUE] };
const EVENT: Form = {
  1: ['timeUnixNano', 'fixed'],
  2: ['name', 'string'],
  3: ['attributes', () => KEY_VALUE, '[]'],
};
const SCOPE: Form = { 1: ['name', 'string'], 2: ['version', 'string'] };
const RESOURCE: Form = { 1: ['attributes', () => KEY_VALUE, '[]'] };

const SPAN: Form = {
  1: ['traceId', 'hex'],
  2: ['spanId', 'hex'],
  3: ['traceState', 'string'],
  4: ['parentSpanId', 'hex'],
  5: ['name', 'string'],
  6: ['kind', 'integer'],
  7: ['startTimeUnixNano', 'fixed'],
  8: ['endTimeUnixNano', 'fixed'],
  9: ['attributes', () => KEY_VALUE, '[]'],
  10: ['droppedAttributesCount', 'integer'],
  11: ['events', () => EVENT, '[]'],
  15: ['status', () => ({ 2: ['message', 'string'], 3: ['code', 'integer'] })],
  16: ['flags', 'fixed32'],
};
const SCOPE_SPANS: Form = { 1: ['scope', () => SCOPE], 2: ['spans', () => SPAN, '[]'] };
const RESOURCE_SPANS: Form = {
  1: ['resource', () => RESOURCE],
  2: ['scopeSpans', () => SCOPE_SPANS, '[]'],
  3: ['schemaUrl', 'string'],
};

/** ExportTraceServiceRequest. */
export const TRACE_REQUEST: Form = { 1: ['resourceSpans', () => RESOURCE_SPANS, '[]'] };

const VARINT = 0;
const LENGTH_DELIMITED = 2;

/** In bytes, by wire type. */
const FIXED: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

/** A message in the form of OTLP/JSON. Fields that the form does not name are left out. */
export function decodeProtobuf(bytes: Buffer, form: Form): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  let at = 0;
  while (at < bytes.length) {
    const tag = Number(varint());
    const raw = rawValue(tag & 7);
    const [name, type, repeated] = form[tag >>> 3] ?? ['', 'ignored'];
    if (type === 'ignored') continue;
    const value = readValue(raw, type);
    message[name] = repeated ? [...((message[name] as unknown[]) ?? []), value] : value;
  }
  return message;

  function varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

  function rawValue(wireType: number): bigint | Buffer {
    if (wireType === VARINT) return varint();
    const length = wireType === LENGTH_DELIMITED ? Number(varint()) : FIXED[wireType];
    if (length === undefined) throw new Error(`there is no wire type ${wireType}`);
    if (at + length > bytes.length) throw new Error('the message breaks off');
    at += length;
    return bytes.subarray(at - length, at);
  }
}

function readValue(raw: bigint | Buffer, type: Type | (() => Form)): unknown {
  if (typeof raw === 'bigint') return type === 'bool' ? raw === 1n : BigInt.asIntN(64, raw);
  if (typeof type === 'function') return decodeProtobuf(raw, type());
  if (type === 'fixed') return raw.readBigInt64LE();
  if (type === 'fixed32') return raw.readUInt32LE();
  if (type === 'double') return raw.readDoubleLE();
  return raw.toString(type === 'hex' ? 'hex' : 'utf8');
}
