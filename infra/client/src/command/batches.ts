import { createHash } from 'node:crypto';
import type { BatchResult, Users } from '../users.ts';
import type { Entry, Item, Refusal } from './files/entry.ts';
import { refusalOf } from './refusal.ts';

/** Items that are sent in one request. */
export type Batch = readonly [Item, ...Item[]];

/** Maximum number of items that the service accepts. */
const MAX_ITEMS = 100;
/** In bytes of lines. The body of such a batch is smaller than the default of SVC_BODY_LIMIT. */
const MAX_BATCH_BYTES = 60_000;

/**
 * Makes batches of the users of a file. The file alone decides which users are a batch, so that a second run makes the same
 * batches. An entry that is not a user is reported to `refuse`.
 */
export async function* readBatches(
  entries: AsyncIterable<readonly Entry[]>,
  refuse: (refusal: Refusal) => Promise<void>,
): AsyncGenerator<Batch, void> {
  let items: Item[] = [];
  let [places, bytes] = [0, 0];
  let fault: unknown;
  try {
    for await (const some of entries) {
      for (const entry of some) {
        if ('problem' in entry) await refuse(entry);
        // 1.3.0 put each of these lines into a batch, so that a refused one takes a place, too.
        if (entry.bytes === undefined) continue;
        if (places === MAX_ITEMS || (places > 0 && bytes + entry.bytes.length > MAX_BATCH_BYTES)) {
          if (isBatch(items)) yield items;
          items = [];
          [places, bytes] = [0, 0];
        }
        if (!('problem' in entry)) items.push(entry);
        places += 1;
        bytes += entry.bytes.length;
      }
    }
  } catch (error) {
    fault = error;
  }
  // The users before a fault of the file are sent.
  if (isBatch(items)) yield items;
  if (fault) throw fault;
}

function isBatch(items: readonly Item[]): items is Batch {
  return items.length > 0;
}

/** The Idempotency-Key of a batch: a digest of exactly its lines and their positions. */
export function keyOf(batch: Batch): string {
  const hash = createHash('sha256');
  for (const { position, bytes } of batch) hash.update(`${position}:${bytes.length}:`).update(bytes);
  return `users-import-${hash.digest('hex')}`;
}

/**
 * Creates the users of a batch, and returns a result for each. A batch that is refused as a whole is sent in halves, because any
 * of its lines may be the reason.
 */
export async function createItems(
  users: Users,
  batch: Batch,
  makeKey: (batch: Batch) => string,
): Promise<readonly BatchResult[]> {
  try {
    return await users.createSome(
      batch.map(({ user }) => user),
      { key: makeKey(batch) },
    );
  } catch (error) {
    const problem = refusalOf(error);
    if (problem === undefined) throw error;
    const middle = batch.length >> 1;
    const [one, other] = [batch.slice(0, middle), batch.slice(middle)];
    if (!isBatch(one) || !isBatch(other)) return [{ status: problem.status, problem } as BatchResult];
    return [...(await createItems(users, one, makeKey)), ...(await createItems(users, other, makeKey))];
  }
}
