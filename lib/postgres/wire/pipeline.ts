import type { ClientBase } from 'pg';
import { prepareValue } from 'pg/lib/utils.js';
import { serialize } from 'pg-protocol';
import { atEndOfTurn } from '../batching/end-of-turn.ts';
import { breaksConnection, isFromPostgres, isStalePlan, NotSent } from '../faults.ts';
import type { Client } from '../hosts/client.ts';
import { abandon } from '../hosts/connection.ts';
import { type Column, describeColumns, type Row, readRow } from './rows.ts';

/** A statement as it was written; there is one object of each. */
export type StatementText = {
  readonly sql: string;
  /** Its name on each connection. */
  readonly name: string;
  /** Whether rows are sent in binary, and left as they come: each is a `ReceivedRow`. */
  readonly isBinary?: boolean;
};

/** What a connection knows of a statement that was prepared on it: the columns, or why it could not be prepared. */
type Known = { columns: readonly Column[]; fault?: unknown };

/** A statement to be sent, and who is to be told. */
export type ToSend = {
  readonly text: StatementText;
  readonly values: readonly unknown[];
  readonly resolve: (rows: readonly Row[]) => void;
  readonly reject: (fault: unknown) => void;
};

/** A statement on its way. */
type Sent = { readonly statement: ToSend; readonly known: Known; readonly rows: Row[] };

type RowDescription = { readonly fields: Parameters<typeof describeColumns>[0] };

/**
 * The statements on one connection: each is sent without waiting for the answers of those before it, as a transaction of
 * its own with its own error, and prepared once. To pg it is a query that is asked for an answer again and again.
 */
export class Pipeline {
  readonly #client: ClientBase;
  readonly #areNamed: boolean;
  /** The messages of the statements that are to be written at the end of this turn. */
  #messages: Buffer[] = [];
  readonly #known = new Map<StatementText, Known>();
  readonly #sent: Sent[] = [];
  /** How many of these, the last ones, are to be written at the end of this turn. */
  #unwritten = 0;
  #isSubmitted = false;
  /** How many answers have come. */
  answered = 0;
  /** Whether nothing may be sent on it any more. */
  isBroken = false;

  constructor(client: ClientBase, { areNamed }: { readonly areNamed: boolean }) {
    this.#client = client;
    this.#areNamed = areNamed;
    const end = () => {
      this.isBroken = true;
    };
    // The second also when it is about to be left for another server: what is on its way is still answered.
    client.once('end', end).on('error', end);
    streamOf(client).once('end', end);
    (client as ClientBase & Pick<Client, 'takeRow'>).takeRow = (received, at) => {
      const [head] = this.#sent;
      if (!head) return true;
      const { statement, known, rows } = head;
      rows.push(
        statement.text.isBinary ? { bytes: received.bytes, at } : readRow(known.columns, received, at),
      );
      return true;
    };
  }

  /** How many answers are to come. */
  get length(): number {
    return this.#sent.length;
  }

  /** Sends a statement, at the end of this turn of the event loop together with all others of the turn. */
  send(statement: ToSend): void {
    const { text, values } = statement;
    const known = this.#prepare(text);
    this.#messages.push(
      serialize.bind({
        statement: this.#areNamed ? text.name : '',
        values: values as unknown[],
        valueMapper: prepareValue,
        binary: text.isBinary === true,
      }),
      serialize.execute(),
      serialize.sync(),
    );
    this.#sent.push({ statement, known, rows: [] });
    this.#awaitAnswer();
    this.#unwritten += 1;
    if (this.#unwritten === 1) atEndOfTurn(this.#flush);
  }

  /** Breaks the connection off: all that is on its way fails. */
  abandon(): void {
    this.isBroken = true;
    abandon(this.#client);
  }

  readonly #flush = () => {
    const stream = streamOf(this.#client);
    const messages = this.#messages;
    this.#messages = [];
    if (this.isBroken || !stream.writable) return this.#rejectUnwritten();
    this.#unwritten = 0;
    // One write for all: pg writes each message by itself, which costs more than all else that is done for a statement.
    stream.write(Buffer.concat(messages));
  };

  /** A connection that ends is sent nothing more: another one may carry these out. */
  #rejectUnwritten(): void {
    const unwritten = this.#sent.splice(this.#sent.length - this.#unwritten);
    this.#unwritten = 0;
    for (const { statement } of unwritten) statement.reject(new NotSent());
  }

  #prepare(text: StatementText): Known {
    const known = this.#known.get(text);
    if (known) return known;
    const added: Known = { columns: [] };
    if (this.#areNamed) this.#known.set(text, added);
    const name = this.#areNamed ? text.name : '';
    this.#messages.push(
      serialize.close({ type: 'S', name }),
      serialize.parse({ name, text: text.sql }),
      serialize.describe({ type: 'S', name }),
    );
    return added;
  }

  #awaitAnswer(): void {
    if (this.#isSubmitted || this.#sent.length === 0) return;
    this.#isSubmitted = true;
    this.#client.query(this as never);
  }

  // What pg calls, as it calls its own queries:

  submit(): void {}

  handleRowDescription({ fields }: RowDescription): void {
    const known = this.#sent[0]?.known;
    if (!known) return;
    known.columns = describeColumns(fields, (type) => this.#client.getTypeParser(type, 'text'));
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#isSubmitted = false;
    const head = this.#sent.shift();
    this.answered += 1;
    head?.statement.resolve(head.rows);
    this.#awaitAnswer();
  }

  handleError(fault: unknown): void {
    this.#isSubmitted = false;
    this.answered += 1;
    if (breaksConnection(fault)) {
      this.isBroken = true;
      this.#rejectUnwritten();
    }
    const head = this.#sent.shift();
    head?.statement.reject(head.known.fault ?? fault);
    if (head) this.#forgetUnprepared(head, fault);
    // What PostgreSQL says is of one statement; if it ends the connection then, pg says so next.
    if (isFromPostgres(fault)) this.#awaitAnswer();
    else for (const { statement } of this.#sent.splice(0)) statement.reject(fault);
  }

  /** Those behind a statement that could not be prepared fail for the same reason. It is prepared anew at its next use. */
  #forgetUnprepared({ statement, known }: Sent, fault: unknown): void {
    const isPrepared = known.columns.length > 0;
    if (isPrepared && !isStalePlan(fault)) return;
    if (!isPrepared) known.fault ??= fault;
    if (this.#known.get(statement.text) === known) this.#known.delete(statement.text);
  }
}

/** What pg knows of a client and does not declare. */
function streamOf(client: ClientBase): NodeJS.ReadWriteStream {
  return (client as unknown as { connection: { stream: NodeJS.ReadWriteStream } }).connection.stream;
}
