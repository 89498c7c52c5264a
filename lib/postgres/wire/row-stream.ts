/** Bytes that have come together. */
export class Received {
  readonly bytes: Buffer;
  #characters: string | undefined;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** The same bytes as Latin-1: what is ASCII among them is a part of this string, and no string of its own. */
  get characters(): string {
    this.#characters ??= this.bytes.toString('latin1');
    return this.#characters;
  }
}

/** Takes a row out of what has come, if it returns true: `at` is where the fields begin, after their number. */
export type TakeRow = (received: Received, at: number) => boolean;

/** Code of DataRow, and of what each message begins with: its code and its length, which includes itself. */
const DATA_ROW = 68;
const HEADER = 5;
const FIELD_COUNT = 2;

/**
 * Takes the rows out of what comes on a connection, and leaves all else to pg. It would make a string of each field, an
 * array and a message of each row, and tell that through two events: of a page of 100 users half of what reading it costs.
 * It listens from the first byte on, because pg may hold the first part of a message later.
 *
 * @see PostgreSQL, "Message Formats"
 */
export function takeRows(stream: NodeJS.ReadableStream, take: TakeRow): void {
  // The first to listen was pg, when it connected.
  const [leave] = stream.listeners('data') as [(bytes: Buffer) => void];
  let incomplete: Buffer | undefined;

  stream.on('data', (received: Buffer) => {
    const bytes = incomplete ? Buffer.concat([incomplete, received]) : received;
    const arrived = new Received(bytes);
    let [left, at] = [0, 0];
    while (at + HEADER <= bytes.length) {
      const end = at + 1 + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      if (bytes[at] === DATA_ROW) {
        if (left < at) leave(bytes.subarray(left, at));
        left = take(arrived, at + HEADER + FIELD_COUNT) ? end : at;
      }
      at = end;
    }
    if (left < at) leave(bytes.subarray(left, at));
    incomplete = at < bytes.length ? bytes.subarray(at) : undefined;
  });
  stream.off('data', leave);
}
