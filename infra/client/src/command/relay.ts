import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Change } from '../feed.ts';
import { isProblem, UnexpectedAnswer } from '../problem.ts';
import { parseRetryAfter } from '../retries.ts';
import type { CommandRun } from './arguments.ts';
import { cursorExpired, MAX_CURSOR_LENGTH, readCursor, wrongCursor } from './cursor-file.ts';
import { EXIT, Failure, reasonOf } from './failure.ts';
import { takeLock } from './lock.ts';
import { type Output, openOutput } from './output.ts';
import { findPlace, nameBeside } from './place.ts';
import { type Receiver, send } from './receiver.ts';

/** Maximum number of changes that come again after a kill. */
const PAGE_SIZE = 100;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 60_000;
/** Maximum time in milliseconds for which `Retry-After` is respected. */
const MAX_RETRY_AFTER_MS = 3_600_000;
const PROGRESS_EVERY_MS = 10_000;
/** In milliseconds: longer than the feed takes to respond, so that an idle feed has no lag. */
const IDLE_MS = 60_000;
/** Statuses by which a receiver refuses the content of a change. */
const REFUSALS = [400, 413, 415, 422];
const MAX_REFUSALS_OF_CHANGE = 5;
/** So many changes in a row are passed without a delivery. One more means that the receiver refuses everything. */
const MAX_PASSED_CHANGES = 2;

/** `passed` is where a change that is passed is written; undefined if none is. */
type RelayRun = CommandRun<'relay'> & {
  readonly receiver: Receiver;
  readonly verifyLock: () => void;
  readonly passed: Output | undefined;
};

/** Sends the changes after the cursor to a receiver, and replaces the cursor after each page of them. Never returns. */
export async function relayChanges(given: CommandRun<'relay'>, receiver: Receiver): Promise<never> {
  const { options, progress, stop } = given;
  const { cursor: path, from, skipRefused } = options;
  if (!existsSync(dirname(path))) throw new Failure(`${path}: its folder does not exist`);
  const isStored = () => existsSync(path);
  const refuseWrongStart = () => {
    if (isStored() === (from === undefined)) return;
    const advice = from
      ? 'exists. Leave out --from to continue from it.'
      : 'does not exist. Add --from now or --from oldest.';
    throw new Failure(`${path} ${advice}`, EXIT.wrongUse);
  };
  refuseWrongStart();
  const verifyLock = await takeLock(options.lock ?? nameBeside(findPlace(path).place, '.lock'));
  // Another relay may have written the cursor until now.
  refuseWrongStart();
  const cursor = from ? undefined : readCursor(path);
  const passed = skipRefused === undefined ? undefined : await openOutput(skipRefused, 'append');
  const relay = new Relay({ ...given, receiver, verifyLock, passed });
  const timer = setInterval(() => progress.say(JSON.stringify(relay.progress())), PROGRESS_EVERY_MS);
  try {
    return await relay.run(cursor);
  } catch (error) {
    if (!stop.soon.aborted || error instanceof Failure) throw error;
    const without = from && isStored() ? ' without --from' : '';
    throw new Failure(`Stopped. Run the same command again${without} to continue.`);
  } finally {
    clearInterval(timer);
  }
}

class Relay {
  readonly #context: RelayRun;
  #delivered = 0;
  /** Changes that were passed since the last delivery. */
  #passedInRow = 0;
  /** The changes of the page that are not delivered, in order. */
  readonly #undelivered = new Set<Change>();
  /** The time before which every change is delivered, as far as is known. */
  #deliveredUntil = Date.now();

  constructor(given: RelayRun) {
    this.#context = given;
  }

  progress() {
    const [oldest] = this.#undelivered;
    const lag = Date.now() - (oldest ? Date.parse(oldest.time) : this.#deliveredUntil);
    const lag_s = oldest || lag > IDLE_MS ? Math.max(0, Math.floor(lag / 1000)) : 0;
    return { event: 'relay_progress', delivered: this.#delivered, lag_s };
  }

  async run(given: string | undefined): Promise<never> {
    const { users, options, stop, verifyLock } = this.#context;
    const { from, wait } = options;
    const signal = stop.soon;
    let stored = from === 'now' ? await this.#ask(() => users.head({ signal }), signal) : given;
    await this.#store(stored);
    for (let cursor = stored; ; ) {
      const begin = cursor === undefined ? {} : { from: cursor };
      const pages = () => users.changePages({ ...begin, follow: true, wait, limit: PAGE_SIZE, signal });
      const { value: page } = await this.#ask(() => pages().next(), signal, given !== undefined);
      given = undefined;
      if (!page) continue;
      verifyLock();
      const before = this.#delivered;
      await this.#deliverAll(page.changes);
      const last = page.changes.length === PAGE_SIZE ? page.changes.at(-1) : undefined;
      this.#deliveredUntil = last ? Date.parse(last.time) : Date.now();
      ({ cursor } = page);
      // After a restart, changes that were passed without a delivery count again.
      const isAllPassed = this.#passedInRow > 0 && this.#delivered === before;
      if (cursor === stored || isAllPassed) continue;
      await this.#store(cursor);
      stored = cursor;
    }
  }

  /** Replaces the cursor. Before there is one, a draft of it finds a file that cannot be written. */
  async #store(cursor: string | undefined): Promise<void> {
    this.#context.verifyLock();
    const file = await openOutput(this.#context.options.cursor, 'replace');
    await file.write(cursor === undefined ? ' '.repeat(MAX_CURSOR_LENGTH) : `${cursor}\n`);
    await (cursor === undefined ? file.flush() : file.close());
  }

  /**
   * Sends the changes in their order, and several at the same time if they are of different users. After a signal, a change that
   * waits for its next attempt, and what must not overtake it, is left.
   */
  async #deliverAll(changes: readonly Change[]): Promise<void> {
    const { options, stop } = this.#context;
    const inProgress = new Set<string>();
    for (const change of changes) this.#undelivered.add(change);
    const work = async () => {
      for (;;) {
        const next = [...this.#undelivered].find(({ subject }) => !inProgress.has(subject));
        // Each user in progress has a worker, which sends its further changes.
        if (!next) return;
        inProgress.add(next.subject);
        try {
          await this.#deliver(next);
        } catch (error) {
          if (!stop.soon.aborted || stop.now.aborted || error instanceof Failure) throw error;
          if (options.parallel === 1) return;
          continue;
        }
        this.#undelivered.delete(next);
        inProgress.delete(next.subject);
      }
    };
    await Promise.all(Array.from({ length: options.parallel }, work));
    if (this.#undelivered.size > 0) stop.soon.throwIfAborted();
  }

  /** Sends a change until it is delivered or passed. */
  async #deliver(change: Change): Promise<void> {
    const { receiver, progress, stop, passed } = this.#context;
    let refusals = 0;
    for (let attempt = 1; ; attempt += 1) {
      const body = JSON.stringify(await this.#write(change));
      const reply = await send(receiver, change.id, body, stop.now).catch((error: unknown) => {
        if (stop.now.aborted) throw error;
        return { status: 0, retryAfter: '', reason: reasonOf(error) };
      });
      const { status, retryAfter, reason = `status ${status}` } = reply;
      const fault = `${receiver.url.origin}: ${reason}`;
      if (status >= 200 && status < 300) {
        this.#delivered += 1;
        this.#passedInRow = 0;
        return;
      }
      if (status === 410) throw new Failure(`${fault}: it wants no further changes`, EXIT.unwanted);
      refusals = REFUSALS.includes(status) ? refusals + 1 : 0;
      if (passed && refusals === MAX_REFUSALS_OF_CHANGE) {
        if (this.#passedInRow === MAX_PASSED_CHANGES)
          throw new Failure(`${fault} for change ${change.id}, the third in a row, which is not passed`);
        this.#passedInRow += 1;
        await passed.write(`${JSON.stringify(change)}\n`);
        await passed.flush();
        progress.say(`${fault}. Change ${change.id} is passed.`);
        return;
      }
      progress.say(`${fault}. Change ${change.id} is sent again.`);
      await this.#pause(attempt, parseRetryAfter(retryAfter));
    }
  }

  /** The change, with the values that its user has now if they are asked for. */
  async #write(change: Change): Promise<object> {
    const { users, options, stop } = this.#context;
    if (!options.withUser) return change;
    const user = await this.#ask(async () => {
      const found = await users.find(change.subject, { signal: stop.now });
      if (found === undefined) return null;
      const version = Number(found.version.replaceAll('"', ''));
      if (!Number.isInteger(version)) throw new UnexpectedAnswer(200, 'a version that is not a number');
      return { ...found, version };
    }, stop.now);
    return { ...change, data: { ...change.data, user } };
  }

  /** The response of the service, which is asked again after any other one. */
  async #ask<Value>(read: () => Promise<Value>, signal: AbortSignal, isOfFile = false): Promise<Value> {
    const { options, progress } = this.#context;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await read();
      } catch (error) {
        if (signal.aborted) throw error;
        if (isProblem(error, 'cursor_expired_error')) throw cursorExpired(options.cursor);
        if (isOfFile && isProblem(error, 'validation_error'))
          throw wrongCursor(options.cursor, reasonOf(error), EXIT.wrongUse);
        progress.say(`The service: ${reasonOf(error)}. It is asked again.`);
        await this.#pause(attempt);
      }
    }
  }

  /** Waits for a growing random time, and at least for the time that the receiver asked for, in milliseconds. */
  async #pause(attempt: number, asked = 0): Promise<void> {
    const longest = Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS);
    const own = longest * (0.5 + Math.random() / 2);
    const pause = Math.max(own, Math.min(asked || 0, MAX_RETRY_AFTER_MS));
    await sleep(pause, undefined, { signal: this.#context.stop.soon });
  }
}
