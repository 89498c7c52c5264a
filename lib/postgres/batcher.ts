import { ChurningSet } from '../churning-set.ts';
import { atEndOfPass } from './sessions/end-of-pass.ts';
import { isLockTimeout, mayConcernOneItem } from './sessions/faults.ts';
import { type Executor, PendingStatement, type StatementRequest } from './sessions/pending-statement.ts';
import type { Row } from './sessions/rows.ts';
import type { StatementText } from './sessions/statement-text.ts';

type BatcherOptions = {
  /** Then a batch contains each key once, and the next batch begins when the last one has ended or is late. */
  readonly areWrites: boolean;
  /** Maximum number of batches in progress for each statement. */
  readonly maxBatches: number;
  /** Maximum number of seconds that an item waits to be sent. */
  readonly poolTimeout: number;
};

/** A read or a write of one row. Each of its values is a list of one. */
class BatchItem extends PendingStatement {
  readonly key = String(this.valueAt(this.request.text.keyAt as number));

  valueAt(index: number): unknown {
    return (this.request.values[index] as readonly unknown[])[0];
  }
}

type Batch = readonly BatchItem[];

/** The items of one statement. */
class ItemQueue {
  readonly waiting = new ChurningSet<BatchItem>();
  /** Whether a batch is taken from the waiting items at the end of this pass of the event loop. */
  isScheduled = false;
  inProgress: { readonly isLate: boolean }[] = [];
}

const MAX_READS = 256;
const MAX_WRITES = 128;

/** Maximum number of items of the parts in which a failed batch is sent again. */
const MAX_PART = 16;

/** A batch of writes that takes longer waits for a lock or for its session. Later batches overtake it. */
const LATE_MS = 5;

/**
 * Carries out many statements of one text as one. The values of each are lists of one. One of them is the key of the row
 * that it returns, which has it as `key` or as `id`.
 *
 * A read sees every write that was acknowledged before the read arrived, because it is sent later. A batch of writes is
 * written completely or not at all. Writes of one key are carried out one after another. If one item may have made a batch
 * fail, the batch is sent in parts, and then item by item, so that each gets its own result. See "Batches" in README.md.
 */
export class Batcher implements Executor {
  readonly #executor: Executor;
  readonly #options: BatcherOptions;
  readonly #queues = new Map<StatementText, ItemQueue>();

  /** Sends batches by this executor. If the executor refuses statements, all items are refused. */
  constructor(executor: Executor, options: BatcherOptions) {
    this.#executor = executor;
    this.#options = options;
  }

  send(request: StatementRequest): Promise<readonly Row[]> {
    const queue = this.#queues.get(request.text) ?? new ItemQueue();
    this.#queues.set(request.text, queue);
    const item = new BatchItem(request);
    item.limitTime(this.#options.poolTimeout, () => queue.waiting.delete(item));
    queue.waiting.add(item);
    this.#schedule(queue);
    return item.response;
  }

  get waitingCount(): number {
    let count = 0;
    for (const { waiting } of this.#queues.values()) count += waiting.size;
    return count;
  }

  #schedule(queue: ItemQueue): void {
    const { waiting, isScheduled, inProgress } = queue;
    const { areWrites, maxBatches } = this.#options;
    const isFull = inProgress.length >= maxBatches || (areWrites && inProgress.some(({ isLate }) => !isLate));
    if (isScheduled || isFull || waiting.size === 0) return;
    queue.isScheduled = true;
    atEndOfPass(() => this.#sendBatch(queue));
  }

  #sendBatch(queue: ItemQueue): void {
    queue.isScheduled = false;
    const batch = { isLate: false };
    queue.inProgress.push(batch);
    const timer = setTimeout(() => {
      batch.isLate = true;
      this.#schedule(queue);
    }, LATE_MS);
    const onEnd = () => {
      clearTimeout(timer);
      queue.inProgress = queue.inProgress.filter((one) => one !== batch);
      this.#schedule(queue);
    };
    // Reads are sent again instead.
    const onLate = this.#options.areWrites ? onEnd : undefined;
    void this.#carryOut(this.#takeBatch(queue.waiting), onLate).then(onEnd);
    this.#schedule(queue);
  }

  /** Writes are in the order of their keys, so that two batches, also of two instances, do not wait for each other. */
  #takeBatch(waiting: ChurningSet<BatchItem>): Batch {
    const { areWrites } = this.#options;
    const batch: BatchItem[] = [];
    const keys = new Set<string>();
    for (const item of waiting) {
      if (batch.length === (areWrites ? MAX_WRITES : MAX_READS)) break;
      if (areWrites && keys.has(item.key)) continue;
      keys.add(item.key);
      waiting.delete(item);
      item.isSent = true;
      batch.push(item);
    }
    return areWrites ? batch.sort((one, other) => (one.key < other.key ? -1 : 1)) : batch;
  }

  /** Resolves when each item has its result. A batch is empty if its items have expired. */
  #carryOut(batch: Batch, onLate?: () => void): Promise<unknown> {
    const [first] = batch;
    if (!first) return Promise.resolve();
    const { text, values } = first.request;
    const isOne = batch.length === 1;
    const lists = isOne ? values : values.map((_, index) => batch.map((item) => item.valueAt(index)));
    const deadline = Math.max(...batch.map((item) => item.request.deadline));
    return this.#executor.send({ text, values: lists, deadline, onLate }).then(
      (rows) => resolveAll(batch, rows),
      (fault) => this.#onFault(batch, fault),
    );
  }

  #onFault(batch: Batch, fault: unknown): unknown {
    const mayBeOneItem = isLockTimeout(fault) ? this.#options.areWrites : mayConcernOneItem(fault);
    if (batch.length > 1 && mayBeOneItem)
      return Promise.all(splitBatch(batch).map((part) => this.#carryOut(part)));
    for (const item of batch) item.reject(fault);
    return undefined;
  }
}

/** Parts of the items whose deadlines have not passed. */
function splitBatch(batch: Batch): readonly Batch[] {
  const now = performance.now();
  const size = batch.length > MAX_PART ? MAX_PART : 1;
  const left = batch.filter(({ request }) => request.deadline > now);
  return Array.from({ length: Math.ceil(left.length / size) }, (_, index) =>
    left.slice(index * size, (index + 1) * size),
  );
}

/** A row that belongs to no item is a defect: its statement does not return the key as it was sent. */
function resolveAll(batch: Batch, rows: readonly Row[]): void {
  const rowsByKey = new Map(rows.map((row) => [row.key ?? row.id, row]));
  const found = batch.map((item) => rowsByKey.get(item.key));
  const isDefect = rowsByKey.size > found.filter(Boolean).length;
  for (const [index, item] of batch.entries()) {
    const row = found[index];
    if (isDefect) item.reject(new Error('a batch returned a row without the key of a statement'));
    else item.resolve(row ? [row] : []);
  }
}
