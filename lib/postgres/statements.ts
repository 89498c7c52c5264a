import { setTimeout as sleep } from 'node:timers/promises';
import { Problem } from '../http/problem.ts';
import { currentRequest, type RequestScope } from '../http/request-scope.ts';
import type { WithinDatabaseSpan } from '../observability/database-span.ts';
import type { Settings } from '../settings/settings.ts';
import { isLockTimeout, isReadOnly, isStalePlan, problemOfFault } from './faults.ts';
import type { Hosts } from './hosts/hosts.ts';
import { type Retry, retryAfter } from './retry.ts';
import type { StatementText } from './wire/pipeline.ts';
import type { Row } from './wire/row-reader.ts';
import type { Way } from './wire/way.ts';

/**
 * What a statement does to others on its connection: `read` and `write` are short and share connections with their
 * like, of `lookup`s and `item`s one statement answers, or writes, many; `long` may take its time, or wait for others
 * for long, and has a connection for itself.
 */
export type Kind = 'read' | 'lookup' | 'write' | 'item' | 'long';

/**
 * How a statement is sent: by its kind, and `aside` once it has waited for a lock where others share its connection.
 */
type WayName = Kind | 'aside';

/** A statement, and what spans call it: its operation and its table (OpenTelemetry, `db.query.summary`). */
export type NamedStatement = {
  readonly text: StatementText & { readonly summary: string; readonly kind: Kind };
  readonly values: readonly unknown[];
};

type Text = NamedStatement['text'];

/** Runs single statements. */
export type Statements = {
  /** @throws {Problem} service_unavailable_error when PostgreSQL does not answer in time */
  run(statement: NamedStatement): Promise<readonly Row[]>;
  /** How many were sent again, by reason. */
  readonly retried: Readonly<Record<Retry['reason'], number>>;
  /** Milliseconds that are left for the statements of the current request; its time begins with its first statement. */
  remainingTime(): number;
  /** How many wait for a connection; those that gather to be one statement count each. */
  readonly waitingCount: number;
  /** Gives up all that is running, and whatever comes later: each rejects as unavailable; PostgreSQL stops it. */
  cancel(): void;
};

/** All of them, by their names. */
export type Ways = Readonly<Record<WayName, Way>>;

/** In milliseconds, how much longer than PostgreSQL's own limit we wait: it answers first, unless it cannot. */
const GRACE = 250;

/** Maximum number of times that a statement is prepared again. Its columns may change each time. */
const MOST_PREPARED = 3;

/** The time that a request's statements have together: a little more than PostgreSQL gives to one; in milliseconds. */
export function timeLimitOf({ statementTimeout }: Settings['postgres']): number {
  return statementTimeout * 1000 + GRACE;
}

/** Statements on these ways. */
export function createStatements(
  ways: Ways,
  settings: Settings['postgres'],
  hosts: Pick<Hosts, 'onReadOnly'>,
  withinSpan?: WithinDatabaseSpan,
): Statements {
  const all = [...new Set(Object.values(ways))];
  const retried = { connection_lost: 0, deadlock: 0, serialization_failure: 0 };
  const timeLimit = timeLimitOf(settings);

  /** Nothing is made for further attempts before the first has failed. */
  function run({ text, values }: NamedStatement): Promise<readonly Row[]> {
    const deadline = deadlineOf(currentRequest());
    return send(text.kind, text, values, deadline).catch((fault) => sendAgain(fault, text, values, deadline));
  }

  function send(name: WayName, text: Text, values: readonly unknown[], deadline: number) {
    const way = ways[name];
    return withinSpan
      ? withinSpan(text, () => way.send(text, values, deadline))
      : way.send(text, values, deadline);
  }

  /** Repeats the statement while that may help. @throws the problem for the last fault */
  async function sendAgain(first: unknown, text: Text, values: readonly unknown[], deadline: number) {
    let [fault, attempts, prepared] = [first, 1, 0];
    let name: WayName = text.kind;
    for (;;) {
      if (isStalePlan(fault) && prepared < MOST_PREPARED) prepared += 1;
      // Other statements wait behind it on this connection, so it moves to a connection for waits.
      else if (name !== 'long' && name !== 'aside' && isLockTimeout(fault)) name = 'aside';
      else {
        if (isReadOnly(fault)) hosts.onReadOnly();
        const retry = retryAfter(fault, attempts, text.summary.startsWith('SELECT'));
        if (!retry || performance.now() + retry.pause >= deadline) throw problemOfFault(fault);
        attempts += 1;
        retried[retry.reason] += 1;
        if (retry.pause > 0) await sleep(retry.pause);
      }
      try {
        return await send(name, text, values, deadline);
      } catch (again) {
        // A statement that was not sent again, or not answered, fails because of the lock that it waited for.
        if (!(again instanceof Problem && isLockTimeout(fault))) fault = again;
      }
    }
  }

  /** The statements of one request share one time limit, which begins with the first. */
  function deadlineOf(request: RequestScope | undefined): number {
    if (!request) return performance.now() + timeLimit;
    request.statementsUntil ??= Math.min(performance.now() + timeLimit, request.answeredBy);
    return request.statementsUntil;
  }

  return {
    run,
    retried,
    get waitingCount() {
      return all.reduce((total, way) => total + way.waitingCount, 0);
    },
    remainingTime: () => deadlineOf(currentRequest()) - performance.now(),
    cancel() {
      for (const way of all) way.cancel();
    },
  };
}
