import { createUser } from '../../handlers/users/create.ts';
import type { Handler } from '../../lib/http/gateway.ts';
import { runMigrations } from '../../lib/migrations/index.ts';
import { createEventLog } from '../../lib/observability/event-log.ts';
import { composeService } from '../../lib/service.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { untilCreated } from './caller.ts';
import { type EventParticulars, eventOf } from './events.ts';
import { freshAddress, responseFromResult, type ServiceResponse, type UserBody } from './responses.ts';
import { startSurroundings } from './service.ts';

/** Composes a service without a host, as a function does, with a migrated database and an issuer of its own. */
export async function startComposition(variables: Variables = {}) {
  const surroundings = await startSurroundings();
  const { database, issuer } = surroundings;
  const environment = { ...surroundings.environment, ...variables };
  const settings = readSettings(environment);
  const lines: Record<string, unknown>[] = [];
  const log = createEventLog(settings, (line) => lines.push(JSON.parse(line)));
  const service = composeService({ settings, log });
  await runMigrations(settings.postgres);

  /** The complete response to an event by its name. The caller has both roles unless `particulars` has a token. */
  async function call(
    endpoint: { bind(service: never): Handler },
    name: string,
    particulars: EventParticulars = {},
  ): Promise<ServiceResponse> {
    const event = await eventOf(name, { token: await issuer.sign(), ...particulars });
    return responseFromResult(await endpoint.bind(service as never)(event));
  }

  return {
    service,
    issuer,
    database,
    environment,
    /** The events that were logged so far. */
    lines: lines as readonly Record<string, unknown>[],
    call,
    async createUser(fields: { email?: string; full_name?: string | null } = {}): Promise<UserBody> {
      const body = () => JSON.stringify({ email: freshAddress(), ...fields });
      return untilCreated(() => call(createUser, 'createUser', { body: body() }));
    },
    async stop() {
      service.keySet.stop();
      await service.database.close(1);
      await surroundings.stop();
    },
  };
}
