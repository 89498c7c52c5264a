/** The lines of a file by the key of their user, without their values: about 100 bytes per line. */
export class UserIndex {
  readonly #positions = new Map<number, number>();
  readonly #lines: number[] = [];
  readonly #members: number[] = [];
  readonly #digests: number[] = [];
  readonly #equal: boolean[] = [];

  get size(): number {
    return this.#lines.length;
  }

  add(key: string, line: number, members: number, digest: number): void {
    this.#positions.set(hash(key), this.size);
    this.#lines.push(line);
    this.#members.push(members);
    this.#digests.push(digest);
    this.#equal.push(false);
  }

  /** The position of the line with this key. */
  find(key: string): number | undefined {
    return this.#positions.get(hash(key));
  }

  lineOf(position: number): number {
    return this.#lines[position] ?? 0;
  }

  membersOf(position: number): number {
    return this.#members[position] ?? 0;
  }

  /** Notes the digest of the user that a line is matched with. */
  match(position: number, digest: number): void {
    this.#equal[position] = this.#digests[position] === digest;
  }

  isEqual(position: number): boolean {
    return this.#equal[position] === true;
  }
}

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
