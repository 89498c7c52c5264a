import { runMigrations } from '../../lib/database/run-migrations.ts';
import { createEventLog } from '../../lib/observability/event-log.ts';
import { composeService } from '../../lib/service.ts';
import { readSettings, type Variables } from '../../lib/settings.ts';
import { createDatabase } from './postgres.ts';
import { environmentOf } from './service.ts';
import { startIssuer } from './tokens.ts';

/** Composes a service without a host, as a function does, over a migrated database and an issuer of its own. */
export async function startComposition(variables: Variables = {}) {
  const [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  const settings = readSettings({ ...environmentOf(database, issuer), ...variables });
  const lines: Record<string, unknown>[] = [];
  const log = createEventLog(settings, (line) => lines.push(JSON.parse(line)));
  const service = composeService({ settings, log });
  await runMigrations(settings.postgres);

  return {
    service,
    issuer,
    database,
    /** The events logged so far. */
    lines: lines as readonly Record<string, unknown>[],
    async stop() {
      service.keySet.stop();
      await Promise.all([service.database.close(1), service.readiness.close(), issuer.stop()]);
      await database.drop();
    },
  };
}
