import type { Attributes, AttributeValue } from '@opentelemetry/api';
import { type Bytes, delimited, number, text } from './protobuf-text.ts';

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
