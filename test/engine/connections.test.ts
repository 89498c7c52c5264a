import { afterAll, beforeAll, expect, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { readResponse, refusal } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';

const USERS = '/api/v1/users/';

let service: Awaited<ReturnType<typeof startService>>;
let admin: Awaited<ReturnType<typeof administer>>;
const warnings: string[] = [];
const remember = ({ name, message }: Error) => warnings.push(`${name}: ${message}`);

beforeAll(async () => {
  process.on('warning', remember);
  service = await startService();
  admin = await administer();
});

afterAll(async () => {
  process.off('warning', remember);
  await admin.end();
  await service.stop();
});

test('requests without a valid token and with invalid bodies are 401, and take no database connection', async () => {
  const foreign = await service.issuer.sign({ aud: 'another-service' });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${foreign}` };
  const before = await admin.countSessions(service.database.name);

  const responses = await Promise.all(
    Array.from({ length: 300 }, async (_, index) => {
      const init = { method: 'POST', body: '{"email": \u0000'.repeat(index), headers };
      return readResponse(await fetch(`${service.url}${USERS}`, init));
    }),
  );

  expect(responses).toEqual(responses.map(() => refusal('unauthorized_error', USERS)));
  expect(await admin.countSessions(service.database.name)).toBe(before);
  // A valid token takes one, which proves the count.
  await service.call('GET', USERS);
  expect(await admin.countSessions(service.database.name)).toBe(before + 1);
});

test('the pool has at most SVC_POSTGRES_POOL_SIZE connections, and readiness has one', async () => {
  await Promise.all(Array.from({ length: 100 }, () => service.call('GET', USERS)));
  await Promise.all(Array.from({ length: 20 }, () => fetch(`${service.url}/ready`)));

  expect(await admin.countSessions(service.database.name)).toBeLessThanOrEqual(11);
});

test('requests to /ready leave nothing behind, in any number', async () => {
  for (let count = 0; count < 30; count += 1) await fetch(`${service.url}/ready`);

  expect(warnings.filter((warning) => warning.includes('leak'))).toEqual([]);
});
