import { createKeySet, type KeySet, type KeySetOptions } from './auth/key-set.ts';
import { createTokenVerifier, type TokenCacheCounts, type VerifyToken } from './auth/token-verifier.ts';
import { type Changes, changesOver } from './changes/changes.ts';
import { type Database, openDatabase } from './database/database.ts';
import { engineOf } from './database/engines.ts';
import { createReadiness, type Readiness } from './database/readiness.ts';
import { followServers } from './database/servers/servers.ts';
import { carryingOutOnce } from './idempotency/carry-out-once.ts';
import type { EventLog } from './observability/event-log.ts';
import { createFailureLog } from './observability/failures.ts';
import type { Tracing } from './observability/tracing.ts';
import type { Settings } from './settings.ts';
import { type UserRepository, userRepository } from './users/user-repository.ts';

/** What every handler has; `tracing` where that is on. */
export type BaseService = {
  readonly settings: Settings;
  readonly log: EventLog;
  readonly tracing?: Tracing | undefined;
};

/** All that a probe may reach. */
export type ProbeService = BaseService & { readonly readiness: Readiness };

/** What every protected route is checked with, and what its host starts and stops. */
export type ProtectedService = ProbeService & {
  readonly verifyToken: VerifyToken;
  readonly tokenCache: TokenCacheCounts;
  readonly keySet: KeySet;
  readonly database: Database;
};

/** All that is about users. */
export type UserService = ProtectedService & {
  readonly users: UserRepository;
  /** How many requests have been answered again. */
  readonly idempotency: { readonly replays: number };
};

/** All that is about their changes. */
export type ChangeService = ProtectedService & { readonly changes: Changes };

/** All that a handler may reach. */
export type Service = UserService & ChangeService;

/** What a route is given of the service, by what it needs. */
export type Services = {
  readonly nothing: BaseService;
  readonly readiness: ProbeService;
  readonly users: UserService;
  readonly changes: ChangeService;
};

/** For what needs nothing more; a function bundle holds no more than its own composition asks for. */
export const composeBase = (base: BaseService): BaseService => base;

/** For the probes. */
export function composeProbes(
  base: BaseService,
  servers = followServers(base.settings.postgres),
): ProbeService {
  return { ...base, readiness: createReadiness(base.settings.postgres, servers) };
}

/** Composes the service. It connects to nothing before the first request needs it. */
export function composeService(base: BaseService): Service {
  const shared = composeProtected(base);
  return { ...withUsers(shared), ...withChanges(shared) };
}

/** For routes that are about users. */
export const composeUsers = (base: BaseService): UserService => withUsers(composeProtected(base));

/** For routes that are about their changes. */
export const composeChanges = (base: BaseService): ChangeService => withChanges(composeProtected(base));

function composeProtected(base: BaseService): ProtectedService {
  const { settings, log, tracing } = base;
  const { oauth, postgres } = settings;
  const servers = followServers(postgres);
  const database = openDatabase(postgres, servers, tracing);
  const keySet = createKeySet({
    uri: oauth.jwksUri,
    algorithms: oauth.algorithms,
    refreshEvery: oauth.jwksRefresh * 1000,
    onRefresh: refreshLog(log),
  });
  const { verifyToken, counts } = createTokenVerifier(oauth, keySet);
  return { ...composeProbes(base, servers), verifyToken, tokenCache: counts, keySet, database };
}

function withUsers(service: ProtectedService): UserService {
  const { settings, database } = service;
  const { statements } = database;
  const engine = engineOf(settings.postgres);
  const idempotency = { replays: 0 };
  const countReplay = () => {
    idempotency.replays += 1;
  };
  const users = userRepository({
    statements,
    carryOutOnce: carryingOutOnce(statements.timeLeft, countReplay, engine),
    engine,
  });
  return { ...service, users, idempotency };
}

function withChanges(service: ProtectedService): ChangeService {
  return { ...service, changes: changesOver(service.database.statements) };
}

/** Failures are told once for each cause, successes and all other tries at `debug`. */
function refreshLog(log: EventLog): NonNullable<KeySetOptions['onRefresh']> {
  const failureLog = createFailureLog(log, 'jwks_refresh_failed');
  return (outcome, failures, cause) => {
    if (outcome === 'succeeded') failureLog.succeeded();
    else if (failureLog.failed(cause)) return;
    log.debug('jwks_refreshed', { outcome, failures });
  };
}
