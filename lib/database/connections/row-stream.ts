/** A row in what has come: where its fields begin, after their number, in the bytes and in the same bytes as characters. */
export type ReceivedRow = (bytes: Buffer, characters: string, at: number) => void;

/** Code of DataRow, and of what each message begins with: its code and its length, which includes itself. */
const DATA_ROW = 68;
const HEADER = 5;
const FIELD_COUNT = 2;

/**
 * Takes the rows out of what comes on a connection, and leaves all else to pg. It would make a string of each field, an
 * array and a message of each row, and tell that through two events: of a page of 100 users half of what reading it costs.
 * What has come becomes one string, and fields are parts of it.
 *
 * @see PostgreSQL, "Message Formats"
 */
export function takeRows(stream: NodeJS.ReadableStream, take: ReceivedRow): void {
  // The first to listen was pg, when it connected.
  const [leave] = stream.listeners('data') as [(bytes: Buffer) => void];
  let incomplete: Buffer | undefined;

  stream.on('data', (received: Buffer) => {
    const bytes = incomplete ? Buffer.concat([incomplete, received]) : received;
    let characters: string | undefined;
    let [left, at] = [0, 0];
    while (at + HEADER <= bytes.length) {
      const end = at + 1 + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      if (bytes[at] === DATA_ROW) {
        if (left < at) leave(bytes.subarray(left, at));
        characters ??= bytes.toString('latin1');
        take(bytes, characters, at + HEADER + FIELD_COUNT);
        left = end;
      }
      at = end;
    }
    if (left < at) leave(bytes.subarray(left, at));
    incomplete = at < bytes.length ? bytes.subarray(at) : undefined;
  });
  stream.off('data', leave);
}
