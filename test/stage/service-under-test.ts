import { afterAll, beforeAll } from 'vitest';
import { maintain } from '../../lib/cleanup.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { untilCreated } from './caller.ts';
import type { DatabaseOptions } from './postgres.ts';
import { freshAddress, type ServiceResponse, USERS, type UserBody } from './responses.ts';
import { startService } from './service.ts';

type UserFields = { email?: string; full_name?: string | null; external_id?: string | null };

/**
 * One service for all tests of a file or of a `describe`: it starts before them and stops after them. `variables` is
 * called at the start, so that it can use values of an earlier `beforeAll`.
 */
export function serviceUnderTest(variables: () => Variables = () => ({}), options: DatabaseOptions = {}) {
  let service: Awaited<ReturnType<typeof startService>>;
  let authorization: string;
  beforeAll(async () => {
    service = await startService(variables(), undefined, options);
    authorization = `Bearer ${await service.issuer.sign()}`;
  });
  afterAll(() => service.stop());

  const call = (...request: Parameters<typeof service.call>) => service.call(...request);

  return {
    get url() {
      return service.url;
    },
    get issuer() {
      return service.issuer;
    },
    get database() {
      return service.database;
    },
    /** The field value of a token that has both roles. */
    get authorization() {
      return authorization;
    },
    events: () => service.events(),
    async eventsOf({ headers }: ServiceResponse) {
      return (await service.events()).filter(({ request_id }) => request_id === headers['x-request-id']);
    },
    /** Runs the cleanup once, as an instance does every ten minutes. */
    cleanUp: () => maintain(readSettings(service.environment)),
    /** The complete response to a request with a token that has both roles, and a JSON body. */
    call,
    async createUser(fields: UserFields = {}): Promise<UserBody> {
      return untilCreated(() => call('POST', USERS, { email: freshAddress(), ...fields }));
    },
  };
}
