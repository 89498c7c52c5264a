import { KeySet, type OnRefresh } from './auth/key-set.ts';
import { TokenVerifier } from './auth/token-verifier.ts';
import { Changes } from './changes/changes.ts';
import { latestMigration } from './migrations/index.ts';
import { Readiness } from './migrations/readiness.ts';
import type { EventLog } from './observability/event-log.ts';
import { FailureLog } from './observability/failure-log.ts';
import type { Tracing } from './observability/telemetry.ts';
import { Database } from './postgres/index.ts';
import type { Settings } from './settings/settings.ts';
import { UserBatches } from './users/batch/create-batch.ts';
import { IdempotentCreates } from './users/idempotent-creates.ts';
import { TakenValues } from './users/taken-values.ts';
import { UserList } from './users/user-list.ts';
import { Users } from './users/users.ts';

export type BaseService = {
  readonly settings: Settings;
  readonly log: EventLog;
  readonly tracing?: Tracing | undefined;
};

/** Everything that protected routes are checked with, and that their host starts and stops. */
export type ProtectedService = ReturnType<typeof composeProtected>;

export type Service = ReturnType<typeof composeService>;

/** The part of the service that a route gets, by its `needs`. */
export type Services = {
  readonly nothing: BaseService;
  readonly readiness: ReturnType<typeof composeProbes>;
  readonly users: ReturnType<typeof composeUsers>;
  readonly changes: ReturnType<typeof composeChanges>;
};

/** For routes that need nothing else. A function bundle contains only its own composition. */
export const composeBase = (base: BaseService): BaseService => base;

export function composeProbes(base: BaseService, database = createDatabase(base)) {
  return { ...base, readiness: new Readiness(database, base.log) };
}

function createDatabase({ settings, log, tracing }: BaseService): Database {
  return new Database(settings.postgres, { log, tracing, latestMigration });
}

/** Composes the service. It connects to nothing before the first request needs it. */
export function composeService(base: BaseService) {
  const shared = composeProtected(base);
  return { ...withUsers(shared), ...withChanges(shared) };
}

export const composeUsers = (base: BaseService) => withUsers(composeProtected(base));

export const composeChanges = (base: BaseService) => withChanges(composeProtected(base));

function composeProtected(base: BaseService) {
  const { settings, log } = base;
  const { oauth } = settings;
  const database = createDatabase(base);
  const keySet = new KeySet(oauth, refreshLog(log));
  const tokenVerifier = new TokenVerifier(oauth, keySet);
  return { ...composeProbes(base, database), tokenVerifier, keySet, database };
}

function withUsers(service: ProtectedService) {
  const { statements } = service.database;
  const taken = new TakenValues(statements);
  const idempotency = new IdempotentCreates(statements);
  return {
    ...service,
    users: new Users(statements, taken, idempotency),
    userBatches: new UserBatches(statements, taken, idempotency),
    userList: new UserList(statements),
    idempotency,
  };
}

function withChanges(service: ProtectedService) {
  return { ...service, changes: new Changes(service.database.statements) };
}

/** Logs failures once per cause, and successes and all other attempts at `debug`. */
function refreshLog(log: EventLog): OnRefresh {
  const failureLog = new FailureLog(log, 'jwks_refresh_failed');
  return (outcome, failures, cause) => {
    if (outcome === 'succeeded') failureLog.onSuccess();
    else if (failureLog.onFailure(cause)) return;
    log.debug('jwks_refreshed', { outcome, failures });
  };
}
