import { createKeySet, type KeySet } from './auth/key-set.ts';
import { createTokenVerifier, type TokenCacheCounts, type VerifyToken } from './auth/token-verifier.ts';
import { type Database, openDatabase } from './database/database.ts';
import { createReadiness, type Readiness } from './database/readiness.ts';
import { describe } from './observability/app-error.ts';
import type { EventLog } from './observability/event-log.ts';
import type { Settings } from './settings.ts';
import { type UserRepository, userRepository } from './users/user-repository.ts';

/** All that a handler may reach, and what its host starts and stops. */
export type Service = {
  readonly settings: Settings;
  readonly log: EventLog;
  readonly users: UserRepository;
  readonly verifyToken: VerifyToken;
  readonly tokenCache: TokenCacheCounts;
  readonly readiness: Readiness;
  readonly keySet: KeySet;
  readonly database: Database;
};

/** Composes the service. It connects to nothing before the first request needs it. */
export function composeService(settings: Settings, log: EventLog): Service {
  const { oauth, postgres } = settings;
  const database = openDatabase(postgres);
  const keySet = createKeySet({
    uri: oauth.jwksUri,
    refreshEvery: oauth.jwksRefresh * 1000,
    onRefresh: (outcome, failures, cause) => logRefresh(log, outcome, failures, cause),
  });
  const { verifyToken, counts } = createTokenVerifier(oauth, keySet);
  return {
    settings,
    log,
    users: userRepository(database.db),
    verifyToken,
    tokenCache: counts,
    readiness: createReadiness(postgres),
    keySet,
    database,
  };
}

/** The first failure in a row is told, and the recovery; not every one in between. */
function logRefresh(log: EventLog, outcome: 'succeeded' | 'failed', failures: number, cause: unknown): void {
  if (outcome === 'failed' && failures === 1) log.warning('jwks_refresh_failed', { cause: describe(cause) });
  else log.debug('jwks_refreshed', { outcome, failures });
}
