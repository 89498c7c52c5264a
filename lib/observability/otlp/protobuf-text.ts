/**
 * Protobuf, one character a byte: V8 joins short texts faster than JavaScript fills a buffer, and what is the same each time
 * stays a text. `latin1` writes such a text as it is.
 */
export type Bytes = string;

const ASCII = /^[\0-\x7f]*$/;

/** A whole number that is not negative, in groups of seven bits. */
export function varint(number: number): Bytes {
  let [bytes, rest] = ['', number];
  while (rest > 0x7f) {
    bytes += String.fromCharCode((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return bytes + String.fromCharCode(rest);
}

/** What has a length: a message within another, or a text. Fields 1 to 15 alone, whose tag is one byte. */
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
