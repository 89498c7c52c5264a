import { expect, test } from 'vitest';
import { administratorOf } from '../stage/administration.ts';
import { refusal, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const DURATION = 2500;

const service = serviceUnderTest();
const { call } = service;
const admin = administratorOf(service);

test('backends killed under load cause nothing but 503s, and every acknowledged write is stored once', async () => {
  const end = Date.now() + DURATION;
  const acknowledged: string[] = [];
  let refused = 0;
  let killed = 0;

  async function write(writer: number): Promise<void> {
    for (let count = 0; Date.now() < end; count += 1) {
      const email = `writer-${writer}-${count}@example.com`;
      const response = await call('POST', USERS, { email });
      if (response.status === 201) acknowledged.push(email);
      else {
        expect(response).toEqual(refusal('service_unavailable_error', USERS));
        refused += 1;
      }
    }
  }
  async function kill(): Promise<void> {
    while (Date.now() < end) {
      killed += await admin.terminate();
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }
  await Promise.all([kill(), ...Array.from({ length: 16 }, (_, index) => write(index))]);

  expect(killed).toBeGreaterThan(20);
  expect(refused).toBeGreaterThan(0);
  expect(acknowledged.length).toBeGreaterThan(0);

  const stored: string[] = [];
  for (let skip = 0; ; skip += 1000) {
    const { body } = await untilServed(`${USERS}?limit=1000&skip=${skip}`);
    stored.push(...(body as UserBody[]).map(({ email }) => email));
    if ((body as UserBody[]).length < 1000) break;
  }
  expect(new Set(stored).size).toBe(stored.length);
  expect(acknowledged.filter((email) => !stored.includes(email))).toEqual([]);
});

test('100 requests in a row succeed afterwards, and no response is 500', async () => {
  const statuses = [];
  for (let count = 0; count < 100; count += 1) {
    statuses.push((await call('GET', `${USERS}?limit=1`)).status);
  }

  expect(statuses).toEqual(Array.from({ length: 100 }, () => 200));
  const events = await service.events();
  expect(events.filter(({ status_code }) => status_code === 500)).toEqual([]);
});

/** Each connection that was killed while idle may cost one more 503. */
async function untilServed(path: string) {
  for (let tries = 0; ; tries += 1) {
    const response = await call('GET', path);
    if (response.status === 200 || tries === 20) return response;
  }
}
