// Two texts whose digests are the same by chance have different ones in another run.
const SEED = Math.trunc(Math.random() * 2 ** 32);

/** A digest of 53 bits (cyrb53, public domain). */
export function hash(text: string): number {
  let one = 0xdeadbeef ^ SEED;
  let two = 0x41c6ce57 ^ SEED;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    one = Math.imul(one ^ code, 2654435761);
    two = Math.imul(two ^ code, 1597334677);
  }
  one = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(two ^ (two >>> 13), 3266489909);
  two = Math.imul(two ^ (two >>> 16), 2246822507) ^ Math.imul(one ^ (one >>> 13), 3266489909);
  return 4294967296 * (2097151 & two) + (one >>> 0);
}
