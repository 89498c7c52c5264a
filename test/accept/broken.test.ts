import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accept } from './accept.ts';
import { FAULTS } from './faults.ts';
import { type Acceptable, startAcceptable, startBreaking } from './stage.ts';

let service: Acceptable;

beforeAll(async () => {
  service = await startAcceptable();
});

afterAll(() => service.stop());

describe.concurrent('the checks report a deployment in which', () => {
  test.each(FAULTS)('$title', async (fault) => {
    const front = await startBreaking(service.url, fault);
    const profile = fault.isSeenReading ? 'read-only' : 'full';
    const { code, failed, report } = await accept([front.url, '--profile', profile], service.credentials);
    await front.stop();

    expect(code, report).toBe(1);
    expect(failed).not.toEqual([]);
  });
});

test('the existing users of a broken deployment stay unchanged', async () => {
  expect(await service.users()).toEqual(service.others);
});
