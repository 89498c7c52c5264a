import type { FieldDef } from 'pg';
import { serialize } from 'pg-protocol';
import { atEndOfPass } from './end-of-pass.ts';
import { endsSession, isIdleTimeout, isStalePlan, UnexpectedMessage, withCode } from './faults.ts';
import { encodeParameter } from './parameters.ts';
import type { PendingStatement } from './pending-statement.ts';
import { PostgresClient } from './postgres-client.ts';
import { type Column, checkColumns, type Received, type Row, type RowReceiver, readRow } from './rows.ts';
import { nameStatement, type StatementText } from './statement-text.ts';

/** The states of a session. `SessionPool` has their diagram. */
export type SessionState = 'opening' | 'idle' | 'busy' | 'stuck' | 'leaving' | 'late' | 'closed';

/** A prepared statement of this session: its columns, or why it could not be prepared. All its uses share this object. */
type Prepared = { columns: readonly Column[]; fault?: unknown };

/** A statement without a response, the number of its incomplete commands, and the tag of the last complete one. */
type Sent = {
  readonly statement: PendingStatement;
  readonly prepared: Prepared;
  readonly rows: Row[];
  incomplete: number;
  tag: string;
};

/** What a session reports. It has not sent these statements. */
export type SessionListener = {
  move(session: Session, state: SessionState): void;
  onResponse(session: Session): void;
  onNotSent(session: Session, statements: readonly PendingStatement[]): void;
};

/** What a session needs of a statement. */
type SessionText = Pick<StatementText, 'sql' | 'name' | 'isBinary'>;

/** Limits waits for locks until the next Sync, which ends the transaction. It has neither columns nor rows. */
const LIMIT_LOCK_WAITS: SessionText = nameStatement(
  "select where set_config('lock_timeout', $1, true) is null",
);

/** For how long the session of a write that was given up stays open if PostgreSQL does not show that it runs the write. */
const MAX_UNSEEN_MS = 30_000;

/** For how long it counts that PostgreSQL runs the statement. The watch for dead sessions asks every two seconds. */
const MAX_SEEN_MS = 5000;

/**
 * A backend of PostgreSQL, which gets statements without a wait for earlier responses. For pg, the session itself is a query
 * that is submitted again and again.
 */
export class Session extends PostgresClient implements RowReceiver {
  /** Only `SessionPool.move` changes it. */
  state: SessionState = 'opening';
  readonly openedAt = Date.now();
  /** Time of the last response (`Date.now()`). */
  respondedAt = Date.now();
  /** The executor of the statements in progress. */
  usedBy: unknown;
  #listener: SessionListener | undefined;
  readonly #prepared = new Map<SessionText, Prepared>();
  readonly #sent: Sent[] = [];
  /** Messages of the statements that are written at the end of this pass, and the number of these statements. */
  #messages: Buffer[] = [];
  #unwritten = 0;
  #isSubmitted = false;

  /** The session is open, and may be used. Its rows are those of statements from now on. */
  join(listener: SessionListener): void {
    this.#listener = listener;
    this.receiver = this;
    listener.move(this, 'idle');
    const onEnd = () => {
      listener.move(this, 'leaving');
      listener.onResponse(this);
    };
    this.once('end', () => listener.move(this, 'closed')).on('error', onEnd);
    this.connection.stream.once('end', onEnd);
  }

  get length(): number {
    return this.#sent.length;
  }

  get isWriting(): boolean {
    return this.#sent[0]?.statement.request.text.isRead === false;
  }

  /** Ends after the statements in progress. */
  leave(state: 'leaving' | 'late' = 'leaving'): void {
    const wasLeft = isLeft(this.state);
    this.#move(state);
    if (wasLeft) return;
    for (const { statement } of this.#sent) statement.request.onLate?.();
    this.once('drain', () => void this.endInTime());
    this.#listener?.onResponse(this);
  }

  /** Sends it at the end of this pass of the event loop. @throws before that, if a value cannot be a parameter */
  send(statement: PendingStatement, lockTimeout?: string): void {
    const { text } = statement.request;
    const values = statement.request.values.map(encodeParameter);
    if (lockTimeout !== undefined) {
      // Before the statement is prepared, because that waits for locks, too.
      this.#prepare(LIMIT_LOCK_WAITS);
      this.#execute(LIMIT_LOCK_WAITS, [lockTimeout]);
    }
    const prepared = this.#prepare(text);
    this.#execute(text, values);
    this.#messages.push(serialize.sync());
    const incomplete = lockTimeout === undefined ? 1 : 2;
    this.#sent.push({ statement, prepared, rows: [], incomplete, tag: '' });
    this.#move('busy');
    this.#awaitResponse();
    this.#unwritten += 1;
    if (this.#unwritten === 1) atEndOfPass(() => this.#write());
  }

  /**
   * The session stays in use until PostgreSQL has ended the statement, whose late response is discarded. A write may wait
   * for its commit. If PostgreSQL does not show that it runs it, the session is closed: at once for a read. A distributed
   * engine has no time limit for the statement, and ends it when it sees that the client has ended its side.
   */
  giveUp(statement: PendingStatement): void {
    if (this.#sent[0]?.statement === statement) this.#move('stuck');
    const close = () => {
      if (this.#sent[0]?.statement !== statement) return;
      const isSeen = performance.now() - this.seenRunningAt < MAX_SEEN_MS;
      if (isSeen) setTimeout(close, MAX_SEEN_MS).unref();
      else this.abandon('no response within the time limit');
    };
    if (statement.request.text.isRead) close();
    else setTimeout(close, MAX_UNSEEN_MS).unref();
    if (!this.engine.isPostgres && !this.isPooled) this.connection.stream.end();
  }

  #prepare(text: SessionText): Prepared {
    const known = this.#prepared.get(text);
    if (known) return known;
    const prepared: Prepared = { columns: [] };
    if (this.engine.hasOwnSessions) this.#prepared.set(text, prepared);
    const name = this.#nameOf(text);
    this.#messages.push(
      serialize.close({ type: 'S', name }),
      serialize.parse({ name, text: text.sql }),
      serialize.describe({ type: 'S', name }),
    );
    return prepared;
  }

  /** A named statement keeps its plan, which may read a whole table that was empty, unless `enable_seqscan` is off. */
  #nameOf({ name }: SessionText): string {
    return this.engine.hasOwnSessions ? name : '';
  }

  #execute(text: SessionText, values: (string | Buffer | null)[]): void {
    const [statement, binary] = [this.#nameOf(text), text.isBinary === true];
    this.#messages.push(serialize.bind({ statement, values, binary }), serialize.execute());
  }

  #write(): void {
    const messages = this.#messages;
    this.#messages = [];
    const { stream } = this.connection;
    if (isLeft(this.state) || !stream.writable) this.#stopSending(this.#sent.length - this.#unwritten);
    else {
      this.#unwritten = 0;
      stream.write(Buffer.concat(messages));
    }
  }

  /** Nothing is sent any more. PostgreSQL has read this number of statements, at most. */
  #stopSending(read: number): void {
    this.#move('leaving');
    this.#unwritten = 0;
    const notSent = this.#sent.splice(read).map(({ statement }) => statement);
    if (notSent.length > 0) this.#listener?.onNotSent(this, notSent);
    this.#listener?.onResponse(this);
  }

  #awaitResponse(): void {
    if (this.#isSubmitted || this.#sent.length === 0) return;
    this.#isSubmitted = true;
    this.query(this as never);
  }

  takeRow(received: Received, offset: number): void {
    const [head] = this.#sent;
    if (!head) return;
    const { statement, prepared, rows } = head;
    checkColumns(prepared.columns, received, offset);
    const { bytes } = received;
    rows.push(
      statement.request.text.isBinary ? { bytes, offset } : readRow(prepared.columns, received, offset),
    );
  }

  /** Statements behind one that could not be prepared fail for the same reason. The next use prepares it again. */
  #forgetUnprepared({ statement, prepared }: Sent, fault: unknown): void {
    const isPrepared = prepared.columns.length > 0;
    if (isPrepared && !isStalePlan(fault)) return;
    this.#prepared.delete(LIMIT_LOCK_WAITS);
    if (!isPrepared) prepared.fault ??= fault;
    if (this.#prepared.get(statement.request.text) === prepared)
      this.#prepared.delete(statement.request.text);
  }

  // The methods that pg calls on a query:

  submit(): void {}

  handleRowDescription({ fields }: { readonly fields: readonly FieldDef[] }): void {
    const prepared = this.#sent[0]?.prepared;
    // That of `LIMIT_LOCK_WAITS` has no columns.
    if (!prepared || fields.length === 0) return;
    if (prepared.columns.length > 0) throw new UnexpectedMessage('PostgreSQL described a statement twice');
    prepared.columns = fields.map(({ name, dataTypeID }) => ({
      name,
      read: this.getTypeParser(dataTypeID, 'text'),
    }));
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    const [head] = this.#sent;
    if (!head) return;
    head.incomplete -= 1;
    head.tag = text;
  }

  handleReadyForQuery(): void {
    const [head] = this.#sent;
    if (head && !isComplete(head)) {
      const fault = new UnexpectedMessage(`${head.rows.length} rows arrived of "${head.tag}"`);
      this.abandon(fault);
      this.handleError(fault);
      return;
    }
    this.#sent.shift();
    head?.statement.resolve(head.rows);
    this.#onResponse();
  }

  handleError(fault: unknown): void {
    if (endsSession(fault)) {
      const read = this.#isUnread(fault) ? 0 : this.#sent.length - this.#unwritten;
      for (const { statement } of this.#sent.splice(0, read)) statement.reject(withCode(fault, 'ended'));
      this.#stopSending(0);
      return;
    }
    const head = this.#sent.shift();
    if (head) {
      head.statement.reject(head.prepared.fault ?? fault);
      this.#forgetUnprepared(head, fault);
    }
    this.#onResponse();
  }

  /** PostgreSQL ended an idle session: nothing ran of what it had not read. */
  #isUnread(fault: unknown): boolean {
    const [first] = this.#sent;
    return this.engine.isPostgres && isIdleTimeout(fault) && first?.tag === '' && first.rows.length === 0;
  }

  #onResponse(): void {
    this.#isSubmitted = false;
    this.respondedAt = Date.now();
    const [head] = this.#sent;
    const state = !head ? 'idle' : head.statement.isGivenUp ? 'stuck' : 'busy';
    this.#move(this.connection.stream.writable ? state : 'leaving');
    this.#awaitResponse();
    this.#listener?.onResponse(this);
  }

  #move(state: SessionState): void {
    this.#listener?.move(this, state);
  }
}

/** Whether all rows have arrived. A tag ends with their number, or with that of the rows written by a statement without any. */
function isComplete({ prepared, rows, incomplete, tag }: Sent): boolean {
  if (incomplete !== 0) return false;
  return prepared.columns.length === 0 ? rows.length === 0 : tag.endsWith(` ${rows.length}`);
}

/** Whether it takes no further statement, and ends after those in progress. */
export function isLeft(state: SessionState): boolean {
  return state === 'leaving' || state === 'late' || state === 'closed';
}
