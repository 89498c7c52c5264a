import { KeySet, type KeySetOptions } from './auth/key-set.ts';
import { TokenVerifier } from './auth/token-verifier.ts';
import { type Changes, changesOver } from './changes/changes.ts';
import { carryingOutOnce } from './idempotency/carry-out-once.ts';
import { latestMigration } from './migrations/index.ts';
import type { EventLog } from './observability/event-log.ts';
import { createFailureLog } from './observability/failures.ts';
import type { Tracing } from './observability/tracing.ts';
import { createReadiness, type Database, openDatabase, type Readiness } from './postgres/index.ts';
import type { Settings } from './settings/settings.ts';
import { type UserRepository, userRepository } from './users/user-repository.ts';

/** The base of every handler; `tracing` only if it is on. */
export type BaseService = {
  readonly settings: Settings;
  readonly log: EventLog;
  readonly tracing?: Tracing | undefined;
};

/** Everything that a probe can reach. */
export type ProbeService = BaseService & { readonly readiness: Readiness };

/** Everything that protected routes are checked with, and that their host starts and stops. */
export type ProtectedService = ProbeService & {
  readonly tokenVerifier: TokenVerifier;
  readonly keySet: KeySet;
  readonly database: Database;
};

/** The part of the service for users. */
export type UserService = ProtectedService & {
  readonly users: UserRepository;
  /** Number of replayed requests. */
  readonly idempotency: { readonly replays: number };
};

/** The part of the service for changes. */
export type ChangeService = ProtectedService & { readonly changes: Changes };

/** Everything that a handler can reach. */
export type Service = UserService & ChangeService;

/** The part of the service that a route gets, by its `needs`. */
export type Services = {
  readonly nothing: BaseService;
  readonly readiness: ProbeService;
  readonly users: UserService;
  readonly changes: ChangeService;
};

/** For routes that need nothing else. A function bundle contains only its own composition. */
export const composeBase = (base: BaseService): BaseService => base;

/** For the probes. */
export function composeProbes(base: BaseService, hosts?: Database['hosts']): ProbeService {
  return { ...base, readiness: createReadiness(base.settings.postgres, latestMigration, hosts) };
}

/** Composes the service. It connects to nothing before the first request needs it. */
export function composeService(base: BaseService): Service {
  const shared = composeProtected(base);
  return { ...withUsers(shared), ...withChanges(shared) };
}

/** For routes about users. */
export const composeUsers = (base: BaseService): UserService => withUsers(composeProtected(base));

/** For routes about changes. */
export const composeChanges = (base: BaseService): ChangeService => withChanges(composeProtected(base));

function composeProtected(base: BaseService): ProtectedService {
  const { settings, log, tracing } = base;
  const { oauth, postgres } = settings;
  const database = openDatabase(postgres, { tracing, latestMigration });
  const keySet = new KeySet({
    uri: oauth.jwksUri,
    algorithms: oauth.algorithms,
    refreshEvery: oauth.jwksRefresh * 1000,
    onRefresh: refreshLog(log),
  });
  const tokenVerifier = new TokenVerifier(oauth, keySet);
  return { ...composeProbes(base, database.hosts), tokenVerifier, keySet, database };
}

function withUsers(service: ProtectedService): UserService {
  const { statements } = service.database;
  const idempotency = { replays: 0 };
  const countReplay = () => {
    idempotency.replays += 1;
  };
  const users = userRepository({ statements, carryOutOnce: carryingOutOnce(statements, countReplay) });
  return { ...service, users, idempotency };
}

function withChanges(service: ProtectedService): ChangeService {
  return { ...service, changes: changesOver(service.database.statements) };
}

/** Logs failures once per cause, and successes and all other attempts at `debug`. */
function refreshLog(log: EventLog): NonNullable<KeySetOptions['onRefresh']> {
  const failureLog = createFailureLog(log, 'jwks_refresh_failed');
  return (outcome, failures, cause) => {
    if (outcome === 'succeeded') failureLog.succeeded();
    else if (failureLog.failed(cause)) return;
    log.debug('jwks_refreshed', { outcome, failures });
  };
}
