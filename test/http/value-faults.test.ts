import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { endpoints } from '../../handlers/index.ts';
import { detailOf } from '../../lib/http/value-faults.ts';

/** The details for this value, from a schema without a message of its own. */
function detailsFor(schema: z.ZodType, value: unknown): readonly string[] {
  return schema.safeParse(value, { error: detailOf }).error?.issues.map(({ message }) => message) ?? [];
}

describe('a fault has the default detail', () => {
  test.each<readonly [string, z.ZodType, unknown, string]>([
    ['for a missing value', z.object({ a: z.string() }), {}, 'must be present'],
    ['for a string', z.string(), 1, 'must be a string'],
    ['for a number', z.number(), '1', 'must be a number'],
    ['for an integer', z.int(), 1.5, 'must be an integer'],
    ['for a boolean', z.boolean(), 'true', 'must be true or false'],
    ['for an array', z.array(z.string()), {}, 'must be an array'],
    ['for an object', z.object({}), [], 'must be an object'],
    ['for one of some texts', z.enum(['a', 'b']), 'c', 'must be one of: a, b'],
    ['for one text', z.literal('a'), 'b', 'must be one of: a'],
    ['for a type that JSON lacks', z.date(), 'now', 'must be an allowed value'],
    ['for a size', z.array(z.string()).max(1), ['a', 'b'], 'must be an allowed value'],
    ['for a form', z.email(), 'a', 'must be an allowed value'],
    ['for one of some shapes', z.union([z.string(), z.boolean()]), 1, 'must be an allowed value'],
  ])('%s', (_case, schema, value, detail) => {
    expect(detailsFor(schema, value)).toEqual([detail]);
  });
});

/** Texts that no schema accepts, or only one. A path and a query contain only texts. */
const ODD_TEXTS = ['', '-', ' ', 'a@b@c', 'x'.repeat(300), '\0', '1e400', '2026-02-30T00:00:00Z'];
const ODD_VALUES = [...ODD_TEXTS, undefined, null, true, 0, -1, 1.5, [], [[]], {}, { a: {} }];

const cases = endpoints.flatMap(({ route: { operationId, params, query, body } }) => [
  [`the path of ${operationId}`, params, ODD_TEXTS, []] as const,
  [`the query of ${operationId}`, query, ODD_TEXTS, []] as const,
  [`the body of ${operationId}`, body, ODD_VALUES, ODD_VALUES] as const,
]);

test.each(cases.filter(([, schema]) => schema))(
  'every fault of %s has a detail in the same form',
  (_name, given, members, wholes) => {
    const schema = given as z.ZodObject;
    const ofMembers = Object.keys(schema.shape).flatMap((name) =>
      members.flatMap((value) => detailsFor(schema, { [name]: value })),
    );
    const details = [...ofMembers, ...wholes.flatMap((value) => detailsFor(schema, value))];

    expect(details.length).toBeGreaterThan(0);
    for (const detail of details) expect(detail).toMatch(/^must (be|have|not) .*[^.]$/);
  },
);
