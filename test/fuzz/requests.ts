import fc, { type Arbitrary } from 'fast-check';
import type { RawRequest } from '../stage/raw-request.ts';
import { isValid, type Operation, type Parameter, type Schema } from './document.ts';
import { inside, outside, textOf, textOutside } from './values.ts';

/** What is known of values beforehand: all in their schemas, some outside, or nothing, since no schema can judge them. */
export type Claim = 'inside' | 'outside' | 'nothing';

export type Fuzzed = RawRequest & { readonly claim: Claim };

type Drawn = { readonly text: string; readonly claim: Claim };
type DrawnBody = Drawn & { readonly mediaType: string };

/**
 * Requests to the operation. `{known}` in a target stands for the id of a user that is there, `{token}` in a field for a
 * token that is accepted.
 */
export function requestTo({ method, path, parameters, bodies, isPublic }: Operation): Arbitrary<Fuzzed> {
  const values = fc.record(Object.fromEntries(parameters.map((one) => [one.name, drawnFor(one)])));
  const body = Object.keys(bodies).length === 0 ? fc.constant(undefined) : bodyOf(bodies);

  return fc.tuple(values, body).map(([drawn, content]) => {
    const textsIn = (place: Parameter['in']) =>
      parameters.flatMap(({ name, in: where }) => {
        const value = drawn[name];
        return where === place && value ? ([[name, value.text]] as const) : [];
      });
    const target = textsIn('path').reduce((text, [name, value]) => text.replace(`{${name}}`, value), path);
    const query = textsIn('query').map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return {
      method,
      target: query.length === 0 ? target : `${target}?${query.join('&')}`,
      fields: [
        ...(isPublic ? [] : [['Authorization', 'Bearer {token}'] as const]),
        ...textsIn('header'),
        ...(content ? [['Content-Type', content.mediaType] as const] : []),
      ],
      body: Buffer.from(content?.text ?? ''),
      claim: claimOfAll([...Object.values(drawn), content].flatMap((one) => one?.claim ?? [])),
    };
  });
}

function claimOfAll(claims: readonly Claim[]): Claim {
  return (
    claims.find((claim) => claim === 'nothing') ?? claims.find((claim) => claim === 'outside') ?? 'inside'
  );
}

function drawnFor({ name, in: place, schema, required, example }: Parameter): Arbitrary<Drawn | undefined> {
  if (place === 'path') return segment(name, schema);
  const value = place === 'query' ? queryValue(name, schema) : headerValue(name, schema, example);
  return required ? value : fc.option(value, { nil: undefined });
}

function segment(name: string, schema: Schema): Arbitrary<Drawn> {
  // A segment that makes another path of this one is no value.
  const other = textOutside(schema, name).filter((text) => !/^(\.{0,2}|batch|changes)$/.test(text));
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant({ text: '{known}', claim: 'inside' } as const) },
    { weight: 2, arbitrary: claiming('inside', inside(schema, name)) },
    { weight: 1, arbitrary: claiming('outside', other.map(encodeURIComponent)) },
  );
}

function queryValue(name: string, schema: Schema): Arbitrary<Drawn> {
  // Only a link makes a cursor, and only some go with a limit of 0.
  if (name === 'cursor') return claiming('nothing', fc.oneof(fc.constant('now'), fc.string()));
  const good = inside(schema, name).map((value): Drawn => {
    const isJudgedBesideOthers = value === 0 ? name === 'limit' : name === 'skip';
    return { text: textOf(value), claim: isJudgedBesideOthers ? 'nothing' : 'inside' };
  });
  return fc.oneof(
    { weight: 8, arbitrary: good },
    { weight: 1, arbitrary: claiming('outside', textOutside(schema, name)) },
  );
}

/** Of the fields that are documented only the key is refused for its form; any value of the others is allowed. */
function headerValue(name: string, schema: Schema, example = ''): Arbitrary<Drawn> {
  const printable = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code));
  const any = fc.string({ unit: printable });
  if (name !== 'Idempotency-Key') {
    return claiming('inside', fc.oneof(any, fc.constantFrom(example, '*', '"1"', 'W/"1", "2"', '')));
  }
  const noKey = any.filter((text) => !isValid(schema, text.trim()));
  return fc.oneof(
    { weight: 6, arbitrary: claiming('inside', inside(schema, name)) },
    { weight: 1, arbitrary: claiming('outside', noKey) },
  );
}

function bodyOf(bodies: Operation['bodies']): Arbitrary<DrawnBody> {
  const documented = fc.constantFrom(...Object.entries(bodies));
  const asJson = (claim: Claim, valuesOf: (schema: Schema) => Arbitrary<unknown>) =>
    documented.chain(([mediaType, schema]) =>
      valuesOf(schema).map((value): DrawnBody => ({ mediaType, text: JSON.stringify(value), claim })),
    );
  const other = fc
    .tuple(fc.constantFrom('text/plain', 'application/json', ''), fc.string())
    .map(([mediaType, text]): DrawnBody => ({ mediaType, text, claim: 'nothing' }));
  return fc.oneof(
    { weight: 6, arbitrary: asJson('inside', inside) },
    { weight: 4, arbitrary: asJson('outside', outside) },
    { weight: 1, arbitrary: other },
  );
}

function claiming(claim: Claim, values: Arbitrary<unknown>): Arbitrary<Drawn> {
  return values.map((value) => ({ text: textOf(value), claim }));
}
