import {
  createReadStream,
  fstatSync,
  openSync,
  ReadStream,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import type { Readable } from 'node:stream';
import { type Problem, ProblemError, UnexpectedAnswer } from '../problem.ts';
import type { BatchResult, NewUser, User, Users } from '../users.ts';
import { type Batch, halvesOf, invalid, keyOf, type Refusal, readBatches, TOO_LONG } from './batches.ts';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';
import type { Progress } from './progress.ts';
import type { Stop } from './stop.ts';

/** What is imported, and how. */
export type ImportOptions = {
  /** A path, or `-` for standard input. */
  readonly file: string;
  /** The path for refused lines. Without it they go to standard error. */
  readonly rejected: string | undefined;
};

/** A file, and the share of it that has been read; undefined for a pipe. */
type Input = { readonly stream: Readable; readonly stats: Stats; share(): number | undefined };

/** In bytes: how much is read at a time. */
const CHUNK = 65_536;

/** Batches that are sent at the same time. */
const MAX_IN_PROGRESS = 4;

/** Names of members that are reported as not stored. */
const MAX_NAMES = 20;

/** Creates a user for each line of a file. Running it again with the same file creates nothing twice. */
export async function importUsers(
  users: Users,
  { file, rejected }: ImportOptions,
  progress: Progress,
  stop: Stop,
): Promise<ExitCode> {
  const input = openInput(file);
  const run = new ImportRun(users, openRefusals(rejected, input.stats));
  progress.start(
    () => ({ count: run.count, share: input.share() }),
    rejected !== undefined && process.stderr.isTTY ? 'bar' : 'lines',
  );
  stop.soon.addEventListener('abort', () => input.stream.destroy());
  const end = await run.readAll(input.stream, stop);
  progress.stop();

  for (const message of run.messages()) progress.say(message);
  const again = `Run the same command again${file === '-' ? ' with the same input' : ''} to continue.`;
  if (run.failure) progress.say(`${reasonOf(run.failure)}\nGave up at line ${end}. ${again}`);
  else if (end !== undefined) progress.say(`Stopped at line ${end}. ${again}`);
  else if (run.count === 0) progress.say('The file has no lines.');
  const { created, exists, refused } = run.counts;
  progress.say(`created ${created}, exists ${exists}, refused ${refused}`);
  if (end !== undefined) return EXIT.failed;
  return refused > 0 ? EXIT.someRefused : EXIT.done;
}

class ImportRun {
  readonly counts = { created: 0, exists: 0, refused: 0 };
  /** The reason to give up. */
  failure: unknown;
  readonly #users: Users;
  readonly #writeRefusal: (text: string) => void;
  readonly #inProgress = new Map<Batch, Promise<void>>();
  readonly #notSent: Batch[] = [];
  readonly #notStored = new Map<string, { lines: number; readonly first: number }>();

  constructor(users: Users, writeRefusal: (text: string) => void) {
    this.#users = users;
    this.#writeRefusal = writeRefusal;
  }

  get count(): number {
    return this.counts.created + this.counts.exists + this.counts.refused;
  }

  /** Returns the first line that is in none of the counts; undefined at the end of the file. */
  async readAll(input: Readable, stop: Stop): Promise<number | undefined> {
    const stopped = new Promise((resolve) => stop.now.addEventListener('abort', resolve));
    let next: number | undefined = 1;
    try {
      for await (const batch of readBatches(input, (refusal) => this.#refuse(refusal))) {
        if (stop.soon.aborted || this.failure) break;
        this.#begin(batch);
        next = (batch.at(-1) ?? batch[0]).line + 1;
        if (this.#inProgress.size === MAX_IN_PROGRESS)
          await Promise.race([...this.#inProgress.values(), stopped]);
      }
      if (!stop.soon.aborted && !this.failure) next = undefined;
    } catch (error) {
      if (!stop.soon.aborted) this.failure ??= error;
    }
    await Promise.race([Promise.all(this.#inProgress.values()), stopped]);
    const unfinished = [...this.#notSent, ...this.#inProgress.keys()].map(([{ line }]) => line);
    const first = Math.min(...unfinished, next ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(first) ? first : undefined;
  }

  /** What the person must know about the lines that were created. */
  messages(): readonly string[] {
    const names = [...this.#notStored].map(
      ([name, { lines, first }]) =>
        `${name} (${lines} ${lines === 1 ? 'line' : 'lines'}, first line ${first})`,
    );
    return names.length === 0
      ? []
      : [`The service does not store these members as given: ${names.join(', ')}`];
  }

  #begin(batch: Batch): void {
    const sending = this.#send(batch).then(
      () => void this.#inProgress.delete(batch),
      (error) => {
        this.#inProgress.delete(batch);
        this.#notSent.push(batch);
        this.failure ??= error;
      },
    );
    this.#inProgress.set(batch, sending);
  }

  async #send(batch: Batch): Promise<void> {
    try {
      const results = await this.#users.createSome(
        batch.map(({ user }) => user),
        { key: keyOf(batch) },
      );
      if (results.length !== batch.length) throw new Failure('the service returned too few results');
      for (const [index, { line, user }] of batch.entries()) {
        this.#settle(line, user, results[index] as BatchResult);
      }
    } catch (error) {
      const problem = refusalOf(error);
      if (problem === undefined) throw error;
      // Any of the lines may be the reason.
      const halves = halvesOf(batch);
      if (halves === undefined) this.#refuse({ line: batch[0].line, problem });
      else for (const half of halves) await this.#send(half);
    }
  }

  #settle(line: number, user: NewUser, result: BatchResult): void {
    if (result.status === 201) {
      this.counts.created += 1;
      this.#noteMembers(line, user, result.user);
    } else if (result.status === 409) this.counts.exists += 1;
    else this.#refuse({ line, problem: result.problem as Problem });
  }

  #refuse({ line, problem }: Refusal): void {
    this.#writeRefusal(`${JSON.stringify({ line, problem: withPointersOfLine(problem) })}\n`);
    this.counts.refused += 1;
  }

  #noteMembers(line: number, sent: NewUser, stored: User): void {
    for (const name of notStored(sent, stored)) {
      const entry = this.#notStored.get(name) ?? { lines: 0, first: line };
      entry.lines += 1;
      if (this.#notStored.size < MAX_NAMES || this.#notStored.has(name)) this.#notStored.set(name, entry);
    }
  }
}

/** The members that the service ignores, or stores with another value. Null means the same as an absent member. */
function notStored(sent: NewUser, stored: User): readonly string[] {
  const values = stored as Readonly<Record<string, unknown>>;
  return Object.entries(sent)
    .filter(([name, value]) => value !== null && values[name] !== value)
    .map(([name]) => name);
}

/** The problem if the service refuses the content of a request; undefined if it cannot respond. */
function refusalOf(error: unknown): Problem | undefined {
  if (error instanceof ProblemError && [400, 413, 422].includes(error.problem.status)) return error.problem;
  // A gateway may refuse a long body by itself.
  if (error instanceof UnexpectedAnswer && error.status === 413) return TOO_LONG;
  // Parsing has no limit for nested values, and writing them has one.
  if (error instanceof RangeError) return invalid('must not be nested so deeply');
  return undefined;
}

/** The pointers of a problem are those of the batch: `#/items/3/email` becomes `#/email`. */
function withPointersOfLine(problem: Problem): Problem {
  if (!('errors' in problem) || problem.errors === undefined) return problem;
  const errors = problem.errors.map((fault) =>
    'pointer' in fault ? { ...fault, pointer: fault.pointer.replace(/^#\/items\/\d+/, '#') } : fault,
  );
  return { ...problem, errors } as Problem;
}

function openInput(file: string): Input {
  try {
    const descriptor = file === '-' ? process.stdin.fd : openSync(file, 'r');
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw new Failure('it is a directory');
    const stream =
      file === '-' ? process.stdin : createReadStream(file, { fd: descriptor, highWaterMark: CHUNK });
    if (stats.isFile() && stream instanceof ReadStream)
      return { stream, stats, share: () => Math.min(stream.bytesRead / Math.max(stats.size, 1), 1) };
    return { stream, stats, share: () => undefined };
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${reasonOf(error)}`, EXIT.wrongUse);
  }
}

/** Returns the function that writes refused lines. */
function openRefusals(path: string | undefined, input: Stats): (text: string) => void {
  if (path === undefined) return (text) => void process.stderr.write(text);
  try {
    const existing = statSync(path, { throwIfNoEntry: false });
    if (existing?.dev === input.dev && existing.ino === input.ino)
      throw new Failure('it is the file that is imported');
    const descriptor = openSync(path, 'w');
    return (text) => {
      try {
        writeFileSync(descriptor, text);
      } catch (error) {
        throw new Failure(`${path} cannot be written: ${reasonOf(error)}`);
      }
    };
  } catch (error) {
    throw new Failure(`${path} cannot be written: ${reasonOf(error)}`, EXIT.wrongUse);
  }
}
