import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { type RawAnswer, type RawRequest, sendTo } from '../stage/raw-request.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { faultIn, type Operation, operations } from './document.ts';
import { type Fuzzed, requestTo } from './requests.ts';

/** FUZZ_SEED replays a run; FUZZ_RUNS, how many requests each operation gets, makes one longer. */
const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 0x7fff_ffff));
const numRuns = Number(process.env.FUZZ_RUNS ?? 100);

/** Of these an OpenAPI document tells in other ways. */
const UNDOCUMENTED = ['content-type', 'content-length'];

const service = serviceUnderTest(() => ({ SVC_LOG_LEVEL: 'error' }));
let token: string;

beforeAll(async () => {
  process.stdout.write(`Fuzzing with FUZZ_SEED=${seed} FUZZ_RUNS=${numRuns}\n`);
  token = await service.issuer.sign();
});

/** With a user that is there, and a token, in place of what stands for them. */
async function filledIn({ target, fields, ...rest }: Fuzzed): Promise<Fuzzed> {
  const id = target.includes('{known}') ? (await service.createUser()).id : '';
  return {
    ...rest,
    target: target.replace('{known}', id),
    fields: fields.map(([name, value]) => [name, value.replace('{token}', token)] as const),
  };
}

/** Status, media type, body and headers are those of the document, and an error is a problem. */
function holdAgainst({ responses }: Operation, { target }: RawRequest, answer: RawAnswer): void {
  const { status, headers, body } = answer;
  expect(status).toBeLessThan(500);
  expect(Object.keys(responses)).toContain(String(status));
  const { headers: documented = {}, content = {} } = responses[status] ?? {};

  const [mediaType] = headers['content-type']?.split(';') ?? [];
  if (mediaType === undefined) expect([content, body]).toEqual([{}, '']);
  else {
    expect(Object.keys(content)).toContain(mediaType);
    expect(faultIn(content[mediaType]?.schema ?? {}, JSON.parse(body))).toBe(undefined);
  }

  expect(Object.keys(documented)).toEqual(
    expect.arrayContaining(Object.keys(headers).filter((name) => !UNDOCUMENTED.includes(name))),
  );
  for (const [name, { required = false, schema }] of Object.entries(documented)) {
    const value = headers[name];
    if (value === undefined) expect([name, required]).toEqual([name, false]);
    else expect(faultIn(schema, schema.type === 'integer' ? Number(value) : value)).toBe(undefined);
  }

  if (status < 400) return;
  expect(mediaType).toBe('application/problem+json');
  expect(JSON.parse(body)).toMatchObject({
    type: expect.stringMatching(/^urn:svc:error:[a-z_]+_error$/),
    status,
    instance: target.split('?')[0],
  });
}

/** Values in their schemas are never refused as such, and others always, but as items of a partial batch. */
function holdAgainstClaim({ claim, body: sent }: Fuzzed, { status, body }: RawAnswer): void {
  if (claim === 'inside') expect(body).not.toContain('urn:svc:error:validation_error');
  else if (claim === 'outside') {
    const isPartial = sent.toString().includes('"mode":"partial"');
    expect(isPartial ? [200, 422] : [422]).toContain(status);
  }
}

describe('values in and out of their schemas are answered as documented', () => {
  test.each(operations.map((operation) => [operation.operationId, operation] as const))(
    '%s',
    async (_operationId, operation) => {
      const statuses = new Set<number>();
      const property = fc.asyncProperty(requestTo(operation), async (fuzzed) => {
        const request = await filledIn(fuzzed);
        const answer = await sendTo(service.url, request);
        statuses.add(answer.status);
        holdAgainst(operation, request, answer);
        holdAgainstClaim(request, answer);
      });
      await fc.assert(property, { seed, numRuns });
      // The requests get as far as the operation goes.
      expect([...statuses].filter((status) => status < 300)).not.toEqual([]);
    },
    120_000,
  );
});
