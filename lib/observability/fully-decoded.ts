const PERCENT = 0x25;

/** The value of each hexadecimal digit, by its character code; -1 for any other byte. */
const HEX_VALUES = Int8Array.from({ length: 256 }, (_, code) => {
  const digit = String.fromCharCode(code);
  return /[\da-f]/i.test(digit) ? Number.parseInt(digit, 16) : -1;
});

const PLAIN = /^[^%\u0080-\uffff]*$/;

/** Characters that no byte stands for. A text without them may be Node's Latin-1 reading of a header in UTF-8. */
const BEYOND_BYTES = /[\u0100-\uffff]/;

/**
 * The text without any percent-encoding, however often and in whatever parts it was applied. It takes one pass: an
 * escape that a decoded character completes is decoded at once. The result is only for inspection: bytes that are not
 * UTF-8 become U+FFFD.
 */
export function fullyDecoded(text: string): string {
  if (PLAIN.test(text)) return text;
  const bytes = Buffer.from(text, BEYOND_BYTES.test(text) ? 'utf8' : 'latin1');
  let length = 0;
  for (const byte of bytes) {
    bytes[length] = byte;
    length += 1;
    while (length > 2 && bytes[length - 3] === PERCENT) {
      const value = byteOf(bytes[length - 2], bytes[length - 1]);
      if (value < 0) break;
      length -= 2;
      bytes[length - 1] = value;
    }
  }
  return bytes.toString('utf8', 0, length);
}

/** The byte of two hexadecimal digits; -1 if one of them is not a digit. */
function byteOf(first = 0, second = 0): number {
  const high = HEX_VALUES[first] ?? -1;
  const low = HEX_VALUES[second] ?? -1;
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}
