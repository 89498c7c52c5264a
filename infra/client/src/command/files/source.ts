import { createReadStream, fstatSync, openSync, type ReadStream, type Stats } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { EXIT, Failure, reasonOf } from '../failure.ts';

/** An open file. */
export class Source {
  readonly file: string;
  readonly stats: Stats;
  readonly #descriptor: number;
  #stream: ReadStream | undefined;

  /** Opens a file, or standard input for `-`. */
  constructor(file: string) {
    this.file = file;
    try {
      this.#descriptor = file === '-' ? process.stdin.fd : openSync(file, 'r');
      this.stats = fstatSync(this.#descriptor);
      if (this.stats.isDirectory()) throw new Failure('it is a directory');
    } catch (error) {
      throw new Failure(`${file} cannot be read: ${reasonOf(error)}`, EXIT.wrongUse);
    }
  }

  /** The bytes that have been read, and those of the file; undefined at its end, and for a pipe. */
  progress(): { readonly read: number; readonly total: number } | undefined {
    const [read, total] = [this.#stream?.bytesRead ?? 0, this.stats.size];
    return read < total ? { read, total } : undefined;
  }

  /** The content, unpacked if it is a gzip. */
  async *readBytes(signal: AbortSignal): AsyncGenerator<Buffer, void> {
    const isFile = this.stats.isFile();
    if (isFile || this.file !== '-')
      this.#stream = createReadStream('', {
        ...{ fd: this.#descriptor, autoClose: false, signal },
        ...(isFile && { start: 0 }),
      });
    try {
      const { begin, whole } = await readBegin(this.#stream ?? process.stdin, ({ length }) => length >= 2);
      yield* begin[0] === 0x1f && begin[1] === 0x8b ? unpack(whole) : whole;
    } catch (error) {
      if (signal.aborted) throw error;
      const isGzip = String((error as NodeJS.ErrnoException).code).startsWith('Z_');
      const what = isGzip ? 'is a damaged or incomplete gzip' : 'cannot be read';
      throw new Failure(`${this.file} ${what}: ${reasonOf(error)}`);
    }
  }

  /** @throws {Failure} if the file was changed since it was opened */
  refuseChange(isChanged = this.#isChanged()): void {
    if (isChanged)
      throw new Failure(`${this.file} was changed while it was read. Run the same command again.`);
  }

  #isChanged(): boolean {
    const { size, mtimeMs, ctimeMs } = fstatSync(this.#descriptor);
    return size !== this.stats.size || mtimeMs !== this.stats.mtimeMs || ctimeMs !== this.stats.ctimeMs;
  }
}

/** Unpacks a gzip, or several after one another. What comes before a fault is returned before it is thrown. */
async function* unpack(parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const gunzip = createGunzip();
  const unpacked: Buffer[] = [];
  let fault: Error | undefined;
  let end = () => {};
  gunzip.on('data', (part) => unpacked.push(part));
  // The callback of a write that fails is not called.
  gunzip.on('error', (error) => {
    fault = error;
    end();
  });
  const push = async function* (work: (done: () => void) => void) {
    await new Promise<void>((done) => {
      end = done;
      work(done);
    });
    // The last part of the content is emitted after that.
    await new Promise(setImmediate);
    yield* unpacked.splice(0);
    if (fault) throw fault;
  };
  for await (const part of parts) yield* push((done) => gunzip.write(part, done));
  yield* push((done) => gunzip.end().once('close', done));
}

/** The beginning of these bytes that is enough, or everything before their end or a fault; and all of them, from the beginning. */
export async function readBegin(parts: AsyncIterable<Buffer>, isEnough: (begin: Buffer) => boolean) {
  const rest = parts[Symbol.asyncIterator]();
  let begin: Buffer = Buffer.alloc(0);
  let fault: unknown;
  try {
    for (let isRead = false; !isRead; ) {
      const { value, done } = await rest.next();
      if (!done) begin = Buffer.concat([begin, value]);
      isRead = done === true || isEnough(begin);
    }
  } catch (error) {
    fault = error;
  }
  const whole = (async function* () {
    try {
      yield begin;
      if (fault) throw fault;
      yield* { [Symbol.asyncIterator]: () => rest };
    } finally {
      await rest.return?.();
    }
  })();
  return { begin, whole };
}
