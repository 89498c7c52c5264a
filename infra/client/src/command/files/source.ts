import { createReadStream, fstatSync, openSync, read as readDescriptor, type Stats } from 'node:fs';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';
import { EXIT, Failure, reasonOf } from '../failure.ts';

const read = promisify(readDescriptor);

/** In bytes: how much is read at a time. */
const CHUNK = 65_536;

/** An open file. A regular one may be read several times. */
export class Source {
  readonly file: string;
  readonly stats: Stats;
  readonly #descriptor: number;
  #read = 0;

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

  /** The bytes that have been read, and those of the file; undefined for a pipe. */
  progress(): { readonly read: number; readonly total: number } | undefined {
    return this.stats.isFile() ? { read: this.#read, total: this.stats.size } : undefined;
  }

  /** The content, unpacked if it is a gzip. */
  async *read(signal: AbortSignal): AsyncGenerator<Buffer, void> {
    const isFile = this.stats.isFile();
    const stream = isFile
      ? Readable.from(this.#readFile())
      : this.file === '-'
        ? process.stdin
        : createReadStream('', { fd: this.#descriptor, highWaterMark: CHUNK });
    const stop = () => void stream.destroy();
    signal.addEventListener('abort', stop);
    try {
      const parts = withBegin(stream, ({ length }) => length >= 2);
      const { value: begin = Buffer.alloc(0) } = await parts.next();
      const whole = async function* () {
        yield begin;
        yield* parts;
      };
      if (begin[0] !== 0x1f || begin[1] !== 0x8b) yield* whole();
      else yield* unpack(whole());
    } catch (error) {
      const isGzip = String((error as NodeJS.ErrnoException).code).startsWith('Z_');
      const what = isGzip ? 'is a damaged or incomplete gzip' : 'cannot be read';
      throw new Failure(`${this.file} ${what}: ${reasonOf(error)}`);
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  async *#readFile(): AsyncGenerator<Buffer, void> {
    for (this.#read = 0; ; ) {
      const { bytesRead, buffer } = await read(
        this.#descriptor,
        Buffer.allocUnsafe(CHUNK),
        0,
        CHUNK,
        this.#read,
      );
      if (bytesRead === 0) return;
      this.#read += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** @throws {Failure} if the file was changed since it was opened */
  refuseChange(): void {
    const { size, mtimeMs, ctimeMs } = fstatSync(this.#descriptor);
    const { stats } = this;
    if (size !== stats.size || mtimeMs !== stats.mtimeMs || ctimeMs !== stats.ctimeMs)
      throw new Failure(`${this.file} was changed while it was read. Run the same command again.`);
  }
}

/** The content of a gzip, or of several after one another. What comes before a fault is returned before it is thrown. */
async function* unpack(parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const gunzip = createGunzip({ chunkSize: CHUNK });
  const unpacked: Buffer[] = [];
  let fault: Error | undefined;
  gunzip
    .on('data', (part) => unpacked.push(part))
    .on('error', (error) => {
      fault = error;
    });
  const isUnpacked = async (begin: (done: () => void) => void) => {
    await new Promise<void>(begin);
    // The last part of the content is emitted after that.
    await new Promise(setImmediate);
  };
  for await (const part of parts) {
    await isUnpacked((done) => gunzip.write(part, done));
    yield* unpacked.splice(0);
    if (fault) throw fault;
  }
  await isUnpacked((done) => gunzip.end().once('close', done));
  yield* unpacked;
  if (fault) throw fault;
}

/** The same bytes with a first part that is enough, or with everything before the end or a fault in one part. */
export async function* withBegin(
  parts: AsyncIterable<Buffer>,
  isEnough: (begin: Buffer) => boolean,
): AsyncGenerator<Buffer, void> {
  let begin: Buffer | undefined = Buffer.alloc(0);
  let fault: unknown;
  try {
    for await (const part of parts) {
      if (begin === undefined) yield part;
      else begin = Buffer.concat([begin, part]);
      if (begin === undefined || !isEnough(begin)) continue;
      yield begin;
      begin = undefined;
    }
  } catch (error) {
    fault = error;
  }
  if (begin?.length) yield begin;
  if (fault) throw fault;
}
