import { Agent } from 'node:http';
import type { IAsyncProperty } from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { fc } from '../stage/fast-check.ts';
import { exchange } from '../stage/raw-request.ts';
import { SEED } from '../stage/seed.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { operations } from './document.ts';
import { type Properties, propertiesOf } from './properties.ts';

const cases = Number(process.env.FUZZ_CASES ?? 1200);

/** Each operation has the same number of cases, and so have the methods. */
const numRuns = Math.ceil(cases / (operations.length + 1));
const TIMEOUT_MS = 60_000 + 100 * numRuns;

const service = serviceUnderTest(() => ({ SVC_LOG_LEVEL: 'error' }));
let properties: Properties;

/** A new connection costs more than the request. */
const agent = new Agent({ keepAlive: true });

beforeAll(async () => {
  process.stdout.write(`Fuzzing with FUZZ_SEED=${SEED} FUZZ_CASES=${cases}\n`);
  // The usual token expires within a long run.
  const exp = Math.floor(Date.now() / 1000) + 86_400;
  properties = propertiesOf({
    send: (request) => exchange(service.url, request, agent),
    createUser: service.createUser,
    token: await service.issuer.sign({ exp }),
    roleless: await service.issuer.sign({ exp, roles: [] }),
  });
});

async function holds<Values>(property: IAsyncProperty<Values>): Promise<void> {
  await fc.assert(property, { numRuns });
}

test.each(operations)(
  'a request with values in and out of their schemas has a documented response: $operationId',
  async (operation) => {
    const statuses = new Set<number>();
    await holds(properties.ofOperation(operation, (status) => statuses.add(status)));
    // The requests get as far as the operation goes.
    expect([...statuses].filter((status) => status < 300)).not.toEqual([]);
  },
  TIMEOUT_MS,
);

test(
  'a method without an operation is 405, and OPTIONS is 204, with the documented methods in Allow',
  () => holds(properties.ofOtherMethods()),
  TIMEOUT_MS,
);
