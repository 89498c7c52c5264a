const PERCENT = 0x25;

/** The value of each hexadecimal digit, by its code; of any other byte -1. */
const HEX_VALUES = Int8Array.from({ length: 256 }, (_, code) => {
  const digit = String.fromCharCode(code);
  return /[\da-f]/i.test(digit) ? Number.parseInt(digit, 16) : -1;
});

/** Text in which nothing is encoded. */
const PLAIN = /^[^%\u0080-\uffff]*$/;

/** What no byte stands for. Without it Node may have made the text of a header's bytes, which were meant as UTF-8. */
const BEYOND_BYTES = /[\u0100-\uffff]/;

/**
 * The text with all percent-encoding undone, however often it was applied and whatever part of it was encoded in turn.
 * It takes one pass: an escape that a decoded character completes is decoded at once. For looking at alone; what is
 * no UTF-8 becomes U+FFFD.
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

/** What two hexadecimal digits stand for; -1 when one is none. */
function byteOf(first = 0, second = 0): number {
  const high = HEX_VALUES[first] ?? -1;
  const low = HEX_VALUES[second] ?? -1;
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}
