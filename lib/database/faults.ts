import { Problem, unavailable } from '../problem.ts';

/**
 * Classes and codes of SQLSTATE (PostgreSQL, appendix A) and system errors that mean: not now.
 * A connection lost or refused, a timeout, a lock not to be had, resources used up, a read-only server, tables that
 * the migrations have not made yet, a session that forgets what was prepared, a conflict of transactions that lasts, an
 * outcome that is not known.
 */
const UNAVAILABLE =
  /^(08...|53...|58...|57014|25P0[34]|57P0.|55P03|25006|26000|28...|3D000|42P01|40001|40003|40P01|E[A-Z_]+)$/;

/** What pg says, without a code, of a connection that it lost, gave up or could not open in time. */
const CONNECTION_LOST = /terminated|timeout|not queryable|cannot connect|Connection ended|after calling end/i;

const READ_ONLY = '25006';

/** The server accepts no session at all: it starts, recovers from a crash, or shuts down. */
const CANNOT_CONNECT_NOW = '57P03';

/** System errors of a host that cannot be connected to. */
const NOT_REACHED = /^E(CONN|HOST|NET|TIMEDOUT|NOTFOUND|AI_AGAIN|PIPE|ADDRNOTAVAIL)/;

/**
 * What PostgreSQL or a pooler ends the session with: connection exceptions, no room for it, the account refused, the
 * database missing, idle for too long, the server ended. By code: how grave it is PostgreSQL says in the language of its
 * messages (`FEHLER` for `ERROR`), and pg keeps no other word of it.
 */
const ENDS_SESSION = /^(08...|53300|28...|3D000|25P0[34]|57P0.)$/;

/**
 * A serialization failure or a deadlock: nothing was written, so the statement may be sent again. What was written after
 * 40003 (statement completion unknown) nobody knows: that one never.
 */
export function conflictOf(fault: unknown): 'serialization_failure' | 'deadlock' | undefined {
  const code = sqlStateOf(fault);
  if (code === '40001') return 'serialization_failure';
  return code === '40P01' ? 'deadlock' : undefined;
}

/**
 * What was prepared is not valid any more: a migration has changed the columns ("cached plan must not change result
 * type"), or the session has forgotten it. Nothing ran.
 */
export function isStalePlan(fault: unknown): boolean {
  const code = sqlStateOf(fault);
  return code === '0A000' || code === '26000';
}

/** The statement has waited for a lock for as long as its connection allows, and has written nothing. */
export function isLockTimeout(fault: unknown): boolean {
  return sqlStateOf(fault) === '55P03';
}

/**
 * PostgreSQL has refused a statement that wrote several items, and one of them may be why: it has written none, and may
 * write the others.
 */
export function isOfOneItem(fault: unknown): boolean {
  if (isLockTimeout(fault)) return true;
  return isOfPostgres(fault) && !isStalePlan(fault) && !UNAVAILABLE.test(sqlStateOf(fault) ?? '');
}

/** The table does not exist (yet). */
export function isMissingTable(fault: unknown): boolean {
  return sqlStateOf(fault) === '42P01';
}

/** The column does not exist (yet). */
export function isMissingColumn(fault: unknown): boolean {
  return sqlStateOf(fault) === '42703';
}

/**
 * A change of the schema that another session was in the way of: a lock, a deadlock, or the same change made at the same
 * time, which `if not exists` does not always see (XX000: "tuple concurrently updated").
 */
export function isInTheWay(fault: unknown): boolean {
  const isInCatalog = sqlStateOf(fault) === '23505' && (fault as { schema?: string }).schema === 'pg_catalog';
  return isInCatalog || /^(55P03|40001|40P01|42710|42P07|XX000)$/.test(sqlStateOf(fault) ?? '');
}

/** The server takes no writes, or not any more. */
export function isReadOnly(fault: unknown): boolean {
  return sqlStateOf(fault instanceof Problem ? fault.cause : fault) === READ_ONLY;
}

/**
 * Time ran out while the statement waited for rows of this table that another transaction has written. PostgreSQL says
 * so in the language of its messages, with quotation marks of that language around the name.
 */
export function waitedFor(fault: unknown, table: string): boolean {
  const cause = fault instanceof Problem ? fault.cause : fault;
  const { where } = (cause ?? {}) as { where?: string };
  return /^(55P03|57014)$/.test(sqlStateOf(cause) ?? '') && where?.includes(table) === true;
}

/** The connection has ended before the statement was sent: nothing ran. */
export class NotSent extends Error {
  constructor() {
    super('the connection was terminated before the statement was sent');
  }
}

/** PostgreSQL has not answered a statement within the request's time limit. */
export class AnswerTimeout extends Error {
  constructor() {
    super('no answer within the time limit');
  }
}

/** The time limit was reached after the statement had been sent, or the statement met others until then. */
export function ranOutOfTime(fault: unknown): boolean {
  const cause = fault instanceof Problem ? fault.cause : fault;
  return cause instanceof AnswerTimeout || /^(40001|40P01|55P03|57014)$/.test(sqlStateOf(cause) ?? '');
}

/** What PostgreSQL appends to an index's name while `reindex concurrently` puts another in its place. */
const REINDEXED = /_cc(new|old)\d*$/;

/** A write refused by a unique index of this name. */
export function violatesUnique(fault: unknown, index: string): boolean {
  const { constraint = '' } = (fault ?? {}) as { constraint?: string };
  return sqlStateOf(fault) === '23505' && constraint.replace(REINDEXED, '') === index;
}

/** Whether the session cannot be used again: PostgreSQL ended it, or did not answer. */
export function breaksConnection(fault: unknown): boolean {
  return !isOfPostgres(fault) || ENDS_SESSION.test(sqlStateOf(fault) ?? '');
}

/**
 * The host cannot be reached, or accepts no session at all, so that it accepts no writes either. A host that refuses a
 * session for another reason (53300, an account) may still accept the writes of others.
 */
export function isUnreachable(fault: unknown): boolean {
  const code = sqlStateOf(fault);
  if (isOfPostgres(fault)) return code === CANNOT_CONNECT_NOW;
  return code === undefined ? CONNECTION_LOST.test(messageOf(fault)) : NOT_REACHED.test(code);
}

/** The connection was closed before there was a session: the host, or what stands before it, was there. */
export function wasCutOff(fault: unknown): boolean {
  return (
    /^(ECONNRESET|EPIPE)$/.test(sqlStateOf(fault) ?? '') || /terminated|not queryable/.test(messageOf(fault))
  );
}

/** Said by PostgreSQL, or a pooler before it; not by pg of its connection. */
export function isOfPostgres(fault: unknown): boolean {
  return (fault as { severity?: string } | undefined)?.severity !== undefined;
}

/** The connection has ended before the answer came. */
export function hasLostConnection(fault: unknown): boolean {
  const isTime = fault instanceof Error && /timeout/i.test(fault.message);
  return !(fault instanceof Problem) && !isTime && breaksConnection(fault);
}

/** A fault of the database, as the answer it deserves; the cause goes to the log and nowhere else. */
export function problemOfFault(fault: unknown): unknown {
  const code = sqlStateOf(fault);
  const message = messageOf(fault);
  if (code === undefined ? CONNECTION_LOST.test(message) : UNAVAILABLE.test(code)) {
    return unavailable(`PostgreSQL cannot answer: ${code ?? message}`, fault);
  }
  if (code?.startsWith('22')) {
    return new Problem('validation_error', {
      reason: `PostgreSQL refused a value that validation let pass: ${code}`,
      detail: 'A value is not valid. See errors.',
      errors: [{ pointer: '#', detail: 'must have only values that can be stored' }],
      cause: fault,
    });
  }
  return fault;
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : '';
}

function sqlStateOf(fault: unknown): string | undefined {
  return (fault as { code?: string } | undefined)?.code;
}
