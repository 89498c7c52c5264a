import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { Problem } from '../problem.ts';
import type { NewUser } from '../users.ts';
import { type Line, readLines } from './lines.ts';

/** A line that is sent. */
export type Item = { readonly line: number; readonly bytes: Buffer; readonly user: NewUser };
/** Items that are sent in one request. */
export type Batch = readonly [Item, ...Item[]];
/** A line that is refused, and why. */
export type Refusal = Omit<Item, 'bytes' | 'user'> & Partial<Item> & { readonly problem: Problem };

/** Maximum number of items that the service accepts. */
const MAX_ITEMS = 100;
/** In bytes of lines. The body of such a batch is smaller than the default of SVC_BODY_LIMIT. */
const MAX_BATCH_BYTES = 60_000;
/** In bytes. A longer line is refused here, so that it does not fill the memory. */
export const MAX_LINE_BYTES = 1_048_576;

/**
 * Reads the lines of a file into batches. The bytes of the file alone decide which lines are a batch, so that a second
 * run makes the same batches. A line that is not a JSON object is reported to `refuse`.
 */
export async function* readBatches(
  chunks: AsyncIterable<Buffer>,
  refuse: (refusal: Refusal) => Promise<void>,
): AsyncGenerator<Batch, void> {
  let items: Item[] = [];
  let [places, bytes] = [0, 0];
  for await (const lines of readLines(chunks, MAX_LINE_BYTES)) {
    for (const line of lines) {
      const found = parseLine(line);
      if (found === undefined) continue;
      if ('problem' in found) await refuse(found);
      // 1.3.0 put each of these lines into a batch, so that a refused one takes a place, too.
      if (found.bytes === undefined) continue;
      if (places === MAX_ITEMS || (places > 0 && bytes + found.bytes.length > MAX_BATCH_BYTES)) {
        if (isBatch(items)) yield items;
        items = [];
        [places, bytes] = [0, 0];
      }
      if (!('problem' in found)) items.push(found);
      places += 1;
      bytes += found.bytes.length;
    }
  }
  if (isBatch(items)) yield items;
}

function isBatch(items: readonly Item[]): items is Batch {
  return items.length > 0;
}

/** The Idempotency-Key of a batch: a digest of exactly its lines and their positions. */
export function keyOf(batch: Batch): string {
  const hash = createHash('sha256');
  for (const { line, bytes } of batch) hash.update(`${line}:${bytes.length}:`).update(bytes);
  return `users-import-${hash.digest('hex')}`;
}

/** The two halves of a batch; undefined for a single line. */
export function halvesOf(batch: Batch): readonly [Batch, Batch] | undefined {
  const middle = batch.length >> 1;
  const [one, other] = [batch.slice(0, middle), batch.slice(middle)];
  return isBatch(one) && isBatch(other) ? [one, other] : undefined;
}

/** The user of a line, or why it cannot be one; undefined for an empty line. */
export function parseLine({ number, bytes }: Line): Item | Refusal | undefined {
  if (bytes === undefined) return { line: number, problem: TOO_LONG };
  if (!isUtf8(bytes)) return { line: number, problem: invalid('must be UTF-8') };
  const text = bytes.toString();
  if (text.trim() === '') return undefined;
  const user = parseJson(text);
  if (user === undefined) return { line: number, problem: invalid('must be valid JSON') };
  if (!isObject(user)) return { line: number, problem: invalid('must be an object') };
  if (hasLostNumber(text, user))
    return { line: number, bytes, user, problem: invalid('must not have a number beyond 1.8e308') };
  // Create ignores this member. Another value than a boolean would create an active user.
  const { is_active } = user as { is_active?: unknown };
  if (is_active != null && typeof is_active !== 'boolean')
    return { line: number, user, problem: invalid('must be a boolean', '#/is_active') };
  return { line: number, bytes, user };
}

function parseJson(text: string): unknown {
  try {
    // A file may begin with a byte order mark.
    return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch {
    return undefined;
  }
}

/** Whether a number is too large for JavaScript. JSON would write it as null. */
function hasLostNumber(text: string, user: object): boolean {
  if (!/\d[eE]|\d{309}/.test(text)) return false;
  const left: unknown[] = [user];
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    if (one === Number.POSITIVE_INFINITY || one === Number.NEGATIVE_INFINITY) return true;
    if (typeof one === 'object' && one !== null) for (const inner of Object.values(one)) left.push(inner);
  }
  return false;
}

/** Only the service knows what makes an object a user. */
function isObject(value: unknown): value is NewUser {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const instance = '/api/v1/users/batch';

/** The problem of a line that the service, too, would refuse. */
export function invalid(detail: string, pointer = '#'): Problem {
  return {
    type: 'urn:svc:error:validation_error',
    title: 'Unprocessable Entity',
    status: 422,
    detail: 'Some values are not valid. See errors.',
    instance,
    errors: [{ pointer, detail }],
  };
}

/** What is wrong with a line, in words. */
export function faultsOf(problem: Problem): string {
  const faults = 'errors' in problem ? problem.errors : undefined;
  const text = faults?.map((fault) =>
    `${'pointer' in fault ? fault.pointer.slice(2) : ''} ${fault.detail}`.trim(),
  );
  return text?.join(', ') ?? problem.detail;
}

/** The problem of a line that is too long for any request. */
export const TOO_LONG: Problem = {
  type: 'urn:svc:error:payload_too_large_error',
  title: 'Payload Too Large',
  status: 413,
  detail: 'The line is too long.',
  instance,
};
