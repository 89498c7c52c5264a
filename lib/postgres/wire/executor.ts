import { unavailable } from '../../http/problem.ts';
import { ResponseTimeout } from '../faults.ts';
import type { StatementText } from './pipeline.ts';
import type { Row } from './rows.ts';

/** A way for statements to PostgreSQL. */
export type Executor = {
  /**
   * Resolves with the rows; until `deadline`, a moment of `performance.now()`.
   *
   * @throws {Problem} service_unavailable_error when it was not sent or not answered in time; else the fault of
   * PostgreSQL, or that of the connection
   */
  send(text: StatementText, values: readonly unknown[], deadline: number): Promise<readonly Row[]>;
  /** How many wait for a connection, and are not sent yet. */
  readonly waitingCount: number;
  /** Gives up all statements, for good. */
  cancel(): void;
};

/** The request may wait no longer. */
export const timeLimitReached = () =>
  unavailable("the request's time limit is reached", new Error('the statement was not sent'));

/** It was not sent within SVC_POSTGRES_POOL_TIMEOUT. */
export const noFreeConnection = () =>
  unavailable('no connection became free in time', new Error('all connections were in use or being opened'));

/** The statement was sent, and the request's time limit is reached. */
export const noResponse = () =>
  unavailable("PostgreSQL cannot answer: the request's time limit is reached", new ResponseTimeout());

/** The shutdown waits no longer. */
export const cancelledByShutdown = () => unavailable('the statement was cancelled by the shutdown');

/** The shutdown is past the drain. */
export const connectionsClosed = () =>
  unavailable('the connections are closed because the service is shutting down');
