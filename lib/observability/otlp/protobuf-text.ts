/**
 * Protobuf as text, one character per byte. V8 joins short texts faster than JavaScript fills a buffer, and constant
 * parts stay texts. `latin1` writes such a text unchanged.
 */
export type Bytes = string;

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

/** A number as a field. */
export function number(field: number, value: number): Bytes {
  return String.fromCharCode(field << 3) + varint(value);
}
