import { Problem, unavailable } from '../../http/problem.ts';
import { readMessage } from '../../observability/redaction.ts';
import type { EngineProfile } from './engine-profile.ts';

/** Classes and codes of SQLSTATE (PostgreSQL, appendix A), and system errors, that mean "not now". */
const UNAVAILABLE =
  /^(08...|53...|58...|57014|25P0[34]|57P0.|55P03|25006|26000|28...|3D000|42501|42P01|40003|E[A-Z_]+)$/;

/** The service does not have the method or the password that PostgreSQL requires. */
const REFUSED_AUTHENTICATION = 'EAUTH';

/** Codes of a certificate that Node refuses. A code of ERR_SSL is a failed handshake. */
const REFUSED_CERTIFICATE =
  /^(?!ERR_SSL).*(CERT|CRL|ISSUER|LEAF_SIGNATURE|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH|HOSTNAME)/;

/** They end a session. pg keeps the severity only in the language of the messages (`FEHLER` for `ERROR`). */
const ENDS_SESSION = /^(08...|53300|28...|3D000|25P0[34]|57P0.)$/;

/** `lock_timeout` or `statement_timeout` has ended a statement. */
const TIME_LIMIT = /^(55P03|57014)$/;

/** Nothing was written, so the statement may be sent again. CIINF and XX000 are conflicts at nodes of Citus. */
export function classifyConflict(fault: unknown): 'serialization_failure' | 'deadlock' | undefined {
  const code = sqlState(fault);
  if (code === '40P01') return 'deadlock';
  const isOfWorker = code === 'XX000' && /could not serialize access/.test(errorMessage(fault));
  return code === '40001' || code === 'CIINF' || isOfWorker ? 'serialization_failure' : undefined;
}

/** Nothing ran: a migration has changed the columns, or the session has forgotten the prepared statement. */
export function isStalePlan(fault: unknown): boolean {
  const code = sqlState(fault);
  if (code !== '0A000') return code === '26000';
  const { routine } = fault as { routine?: string };
  return (
    routine === 'RevalidateCachedQuery' || errorMessage(fault) === 'cached plan must not change result type'
  );
}

/** The statement has waited for a lock for as long as its session allows, and has written nothing. */
export function isLockTimeout(fault: unknown): boolean {
  return sqlState(fault) === '55P03';
}

/** PostgreSQL has refused a statement of several items, possibly because of one of them. It wrote none of them. */
export function mayConcernOneItem(fault: unknown): boolean {
  return isFromPostgres(fault) && !isUnavailable(fault) && !isStalePlan(fault) && !isUnmigrated(fault);
}

export function isMissingTable(fault: unknown): boolean {
  return sqlState(causeOf(fault)) === '42P01';
}

/** The column, or the unique index that `on conflict` names, does not exist (yet). */
export function isUnmigrated(fault: unknown): boolean {
  return hasState(fault, /^(42703|42P10)$/);
}

/** `if not exists` does not always notice the same change of another session (XX000: "tuple concurrently updated"). */
export function isSchemaConflict(fault: unknown): boolean {
  const isInCatalog = sqlState(fault) === '23505' && (fault as { schema?: string }).schema === 'pg_catalog';
  return isInCatalog || hasState(fault, /^(55P03|40001|40P01|42710|42P01|42P07|XX000)$/);
}

/** The server accepts no writes, or no longer accepts them. */
export function isReadOnly(fault: unknown): boolean {
  return sqlState(causeOf(fault)) === '25006';
}

/** The time limit was reached while the statement waited for rows of this table that another transaction had written. */
export function waitedFor(fault: unknown, table: string): boolean {
  const cause = causeOf(fault);
  const { where } = (cause ?? {}) as { where?: string };
  return hasState(cause, TIME_LIMIT) && where?.includes(table) === true;
}

export function isIdleTimeout(fault: unknown): boolean {
  return sqlState(fault) === '57P05';
}

/** What arrived is not what PostgreSQL sends. The session ends. */
export class UnexpectedMessage extends Error {
  readonly code = 'EPROTO';
}

/** pg's errors have no code: about the end of a connection, about its TLS, or about the authentication that follows. */
export function withCode(fault: unknown, when: 'ended' | 'tls' | 'authentication'): unknown {
  const code = { ended: 'ECONNRESET', tls: 'EPROTO', authentication: REFUSED_AUTHENTICATION }[when];
  return fault instanceof Error && !('code' in fault) ? Object.assign(fault, { code }) : fault;
}

export class ResponseTimeout extends Error {}

/** The time limit was reached after the statement was sent, or while it still conflicted with other transactions. */
export function reachedTimeLimit(fault: unknown): boolean {
  const cause = causeOf(fault);
  return (
    classifyConflict(cause) !== undefined || cause instanceof ResponseTimeout || hasState(cause, TIME_LIMIT)
  );
}

/** The suffixes of an index's name: while `reindex concurrently` replaces the index, and of a shard. */
const INDEX_SUFFIX = /(_cc(new|old)\d*)?(_\d+)?$/;

/** A write refused by a unique index of this name. A node of Citus passes on only the message of another node. */
export function violatesUnique(fault: unknown, index: string): boolean {
  if (sqlState(fault) !== '23505') return false;
  const { constraint, message } = fault as { constraint?: string; message: string };
  const names = constraint === undefined ? message.split(/\W+/) : [constraint];
  return names.some((name) => name.replace(INDEX_SUFFIX, '') === index);
}

/** The session cannot be used again: PostgreSQL ended it, or did not respond. */
export function endsSession(fault: unknown): boolean {
  return !isFromPostgres(fault) || hasState(fault, ENDS_SESSION);
}

/** Only a living server, which may accept the writes of others, refuses a session by an error or for how it is opened. */
export function isUnreachable(fault: unknown): boolean {
  const code = sqlState(fault);
  // 57P03: the server starts, recovers from a crash, or shuts down.
  if (isFromPostgres(fault)) return code === '57P03';
  return code !== REFUSED_AUTHENTICATION && !REFUSED_CERTIFICATE.test(code ?? '');
}

/** The connection was closed before the session began. The host, or a proxy in front of it, was reachable. */
export function wasCutOff(fault: unknown): boolean {
  return hasState(withCode(fault, 'ended'), /^(ECONNRESET|EPIPE)$/);
}

/** An error of PostgreSQL or of a pooler, not of pg about its connection. */
function isFromPostgres(fault: unknown): boolean {
  return (fault as { severity?: string } | undefined)?.severity !== undefined;
}

export function hasLostSession(fault: unknown): boolean {
  return !(fault instanceof Problem) && endsSession(fault);
}

/** The problem for a known fault, otherwise the fault, which is a defect. For a distributed engine, XX000 is like 40003. */
export function translateFault(fault: unknown, { isPostgres }: Pick<EngineProfile, 'isPostgres'>): unknown {
  const code = sqlState(fault);
  if (isUnavailable(fault) || (code === 'XX000' && !isPostgres)) {
    // The code says nothing at night, and the message may be in the language of PostgreSQL.
    const reason = [code, readMessage(fault)].filter(Boolean).join(': ');
    return unavailable(`PostgreSQL cannot answer: ${reason}`, fault);
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

function isUnavailable(fault: unknown): boolean {
  const code = sqlState(fault) ?? '';
  // With XX000, only the message, which is English, shows that Citus has lost the connection to another node.
  const isOfWorker = code === 'XX000' && /\bconnection\b/.test(errorMessage(fault));
  return UNAVAILABLE.test(code) || isOfWorker || classifyConflict(fault) !== undefined;
}

/** The fault for which a problem was made. */
export function causeOf(fault: unknown): unknown {
  return fault instanceof Problem ? (fault.cause ?? fault) : fault;
}

function errorMessage(fault: unknown): string {
  return fault instanceof Error ? fault.message : '';
}

function sqlState(fault: unknown): string | undefined {
  return (fault as { code?: string } | undefined)?.code;
}

function hasState(fault: unknown, states: RegExp): boolean {
  return states.test(sqlState(fault) ?? '');
}
