import { createKeySet, type KeySet, type KeySetOptions } from './auth/key-set.ts';
import { createTokenVerifier, type TokenCacheCounts, type VerifyToken } from './auth/token-verifier.ts';
import { type Changes, changesOver } from './changes/changes.ts';
import { keepsChanges } from './changes/keeps-changes.ts';
import { type Database, openDatabase } from './database/database.ts';
import { engineOf } from './database/engines.ts';
import { createReadiness, type Readiness } from './database/readiness.ts';
import { followServers } from './database/servers.ts';
import { createCarryOutOnce } from './idempotency/carry-out-once.ts';
import type { EventLog } from './observability/event-log.ts';
import { createFailureLog } from './observability/failures.ts';
import type { Tracing } from './observability/tracing.ts';
import type { Settings } from './settings.ts';
import { type UserRepository, userRepository } from './users/user-repository.ts';
import { unrecordedWrites } from './users/writing.ts';

/** What every handler has; `tracing` where that is on. */
export type BaseService = {
  readonly settings: Settings;
  readonly log: EventLog;
  readonly tracing?: Tracing | undefined;
};

/** All that a probe may reach. */
export type ProbeService = BaseService & { readonly readiness: Readiness };

/** All that a handler may reach, and what its host starts and stops. */
export type Service = ProbeService & {
  readonly users: UserRepository;
  readonly changes: Changes;
  /** How many requests have been answered again. */
  readonly idempotency: { readonly replays: number };
  readonly verifyToken: VerifyToken;
  readonly tokenCache: TokenCacheCounts;
  readonly keySet: KeySet;
  readonly database: Database;
};

/** What a route is given of the service, by what it needs. */
export type Services = {
  readonly nothing: BaseService;
  readonly readiness: ProbeService;
  readonly users: Service;
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
  const { statements } = database;
  const recordsChanges = keepsChanges(settings);
  const engine = engineOf(postgres);
  const idempotency = { replays: 0 };
  const countReplay = () => {
    idempotency.replays += 1;
  };
  return {
    ...composeProbes(base, servers),
    users: userRepository({
      writes: recordsChanges ? statements : unrecordedWrites(statements),
      reads: statements,
      recordsChanges,
      carryOutOnce: createCarryOutOnce(statements.timeLeft, countReplay, engine),
      engine,
    }),
    idempotency,
    changes: changesOver(statements),
    verifyToken,
    tokenCache: counts,
    keySet,
    database,
  };
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
