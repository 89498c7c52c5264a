import type { FieldDef } from 'pg';
import { serialize } from 'pg-protocol';
import { atEndOfPass } from './end-of-pass.ts';
import { type EngineSettings, engineProfile } from './engine-profile.ts';
import { endsSession, isIdleTimeout, isStalePlan, UnexpectedMessage, withCode } from './faults.ts';
import { encodeParameter } from './parameters.ts';
import { nameStatement, type PendingStatement, type StatementText } from './pending-statement.ts';
import { type Column, checkColumns, type Received, type Row, type RowReceiver, readRow } from './rows.ts';
import type { Session } from './session.ts';

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

/** Is called after each response and after an error of the session, and for statements that it has not sent. */
export type PipelineListener = {
  onResponse(): void;
  onNotSent(statements: readonly PendingStatement[]): void;
};

/** Limits waits for locks until the next Sync, which ends the transaction. It has neither columns nor rows. */
const LIMIT_LOCK_WAITS: StatementText = {
  ...nameStatement("select where set_config('lock_timeout', $1, true) is null"),
  isRead: true,
};

/** For how long the session of a write that was given up stays open if PostgreSQL does not show that it runs the write. */
const MAX_UNSEEN_MS = 30_000;

/** For how long it counts that PostgreSQL runs the statement. The watch for dead sessions asks every two seconds. */
const MAX_SEEN_MS = 5000;

/** Sends statements without a wait for earlier responses. For pg it is a query that is submitted again and again. */
export class Pipeline implements RowReceiver {
  readonly session: Session;
  /** Time of the last response (`Date.now()`). */
  respondedAt = Date.now();
  /** Whether nothing more may be sent. */
  isBroken = false;
  readonly #areNamed: boolean;
  readonly #isPostgres: boolean;
  readonly #seesEndOfClient: boolean;
  readonly #listener: PipelineListener;
  readonly #prepared = new Map<StatementText, Prepared>();
  readonly #sent: Sent[] = [];
  /** Messages of the statements that are written at the end of this pass, and the number of these statements. */
  #messages: Buffer[] = [];
  #unwritten = 0;
  #isSubmitted = false;

  constructor(session: Session, settings: EngineSettings, listener: PipelineListener) {
    this.session = session;
    const { hasOwnSessions, isPostgres } = engineProfile(settings);
    // A named statement keeps its plan, which may read a whole table that was empty, unless `enable_seqscan` is off.
    this.#areNamed = hasOwnSessions;
    this.#isPostgres = isPostgres;
    this.#seesEndOfClient = !isPostgres && settings.pooler === 'none';
    this.#listener = listener;
    session.receiver = this;
    const onEnd = () => {
      this.isBroken = true;
      for (const { statement } of this.#sent) statement.options.onLate?.();
      listener.onResponse();
    };
    // A session that leaves its host emits an error, and still responds to the statements in progress.
    session.once('end', onEnd).on('error', onEnd);
    session.connection.stream.once('end', onEnd);
  }

  get length(): number {
    return this.#sent.length;
  }

  /** Whether further statements wait for the end of one that was given up. */
  get isStuck(): boolean {
    return this.#sent[0]?.statement.isGivenUp === true;
  }

  get isUsable(): boolean {
    return !this.isBroken && !this.isStuck && this.session.connection.stream.writable;
  }

  get isWriting(): boolean {
    return this.#sent[0]?.statement.text.isRead === false;
  }

  /** Sends it at the end of this pass of the event loop. @throws before that, if a value cannot be a parameter */
  send(statement: PendingStatement, lockTimeout?: string): void {
    const { text } = statement;
    const values = statement.values.map(encodeParameter);
    if (lockTimeout !== undefined) {
      // Before the statement is prepared, because that waits for locks, too.
      this.#prepare(LIMIT_LOCK_WAITS);
      this.#execute(LIMIT_LOCK_WAITS, [lockTimeout]);
    }
    const prepared = this.#prepare(text);
    this.#execute(text, values);
    this.#messages.push(serialize.sync());
    this.#sent.push({
      statement,
      prepared,
      rows: [],
      incomplete: lockTimeout === undefined ? 1 : 2,
      tag: '',
    });
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
    const close = () => {
      if (this.#sent[0]?.statement !== statement) return;
      const isSeen = performance.now() - this.session.seenRunningAt < MAX_SEEN_MS;
      if (isSeen) setTimeout(close, MAX_SEEN_MS).unref();
      else this.session.abandon('no response within the time limit');
    };
    if (statement.text.isRead) close();
    else setTimeout(close, MAX_UNSEEN_MS).unref();
    if (this.#seesEndOfClient) this.session.connection.stream.end();
  }

  #prepare(text: StatementText): Prepared {
    const known = this.#prepared.get(text);
    if (known) return known;
    const prepared: Prepared = { columns: [] };
    if (this.#areNamed) this.#prepared.set(text, prepared);
    const name = this.#areNamed ? text.name : '';
    this.#messages.push(
      serialize.close({ type: 'S', name }),
      serialize.parse({ name, text: text.sql }),
      serialize.describe({ type: 'S', name }),
    );
    return prepared;
  }

  #execute({ name, isBinary = false }: StatementText, values: (string | Buffer | null)[]): void {
    const statement = this.#areNamed ? name : '';
    this.#messages.push(serialize.bind({ statement, values, binary: isBinary }), serialize.execute());
  }

  #write(): void {
    const messages = this.#messages;
    this.#messages = [];
    const { stream } = this.session.connection;
    if (this.isBroken || !stream.writable) this.#end(this.#sent.length - this.#unwritten);
    else {
      this.#unwritten = 0;
      stream.write(Buffer.concat(messages));
    }
  }

  /** Nothing is sent any more. PostgreSQL has read this number of statements, at most. */
  #end(read: number): void {
    this.isBroken = true;
    this.#unwritten = 0;
    const notSent = this.#sent.splice(read).map(({ statement }) => statement);
    if (notSent.length > 0) this.#listener.onNotSent(notSent);
    this.#listener.onResponse();
  }

  #awaitResponse(): void {
    if (this.#isSubmitted || this.#sent.length === 0) return;
    this.#isSubmitted = true;
    this.session.query(this as never);
  }

  takeRow(received: Received, at: number): void {
    const [head] = this.#sent;
    if (!head) return;
    const { statement, prepared, rows } = head;
    checkColumns(prepared.columns, received, at);
    const { bytes } = received;
    rows.push(statement.text.isBinary ? { bytes, at } : readRow(prepared.columns, received, at));
  }

  /** Statements behind one that could not be prepared fail for the same reason. The next use prepares it again. */
  #forgetUnprepared({ statement, prepared }: Sent, fault: unknown): void {
    const isPrepared = prepared.columns.length > 0;
    if (isPrepared && !isStalePlan(fault)) return;
    this.#prepared.delete(LIMIT_LOCK_WAITS);
    if (!isPrepared) prepared.fault ??= fault;
    if (this.#prepared.get(statement.text) === prepared) this.#prepared.delete(statement.text);
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
      read: this.session.getTypeParser(dataTypeID, 'text'),
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
      this.session.abandon(fault);
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
      this.#end(0);
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
    return this.#isPostgres && isIdleTimeout(fault) && first?.tag === '' && first.rows.length === 0;
  }

  #onResponse(): void {
    this.#isSubmitted = false;
    this.respondedAt = Date.now();
    this.#awaitResponse();
    this.#listener.onResponse();
  }
}

/** Whether all rows have arrived. A tag ends with their number, or with that of the rows written by a statement without any. */
function isComplete({ prepared, rows, incomplete, tag }: Sent): boolean {
  if (incomplete !== 0) return false;
  return prepared.columns.length === 0 ? rows.length === 0 : tag.endsWith(` ${rows.length}`);
}
