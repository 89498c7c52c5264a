import type { Arbitrary } from 'fast-check';
import { fc } from '../stage/fast-check.ts';
import type { RawRequest } from '../stage/raw-request.ts';
import { isValid, type Operation, type Parameter, type Schema } from './document.ts';
import { anyJson, anyText, inside, standsForValue, textOf } from './values.ts';

/**
 * What is known of a request beforehand: all values are in their schemas, some are outside, or nothing, because no schema
 * can judge them. A number is the status of a refusal that comes before the values.
 */
export type Claim = 'inside' | 'outside' | 'nothing' | 401 | 403 | 413 | 415;

export type Fuzzed = RawRequest & { readonly claim: Claim };

type Drawn = { readonly text: string; readonly claim: Claim };
type DrawnBody = Drawn & { readonly mediaType: string };

/** In the order in which the service refuses. Nothing is known beside a value of which nothing is known. */
const CLAIMS: readonly Claim[] = [401, 403, 415, 413, 'nothing', 'outside'];

/**
 * Requests to the operation. `{known}` in a target stands for the id of a user that is there, and `{token}` and
 * `{roleless}` in a field for tokens.
 */
export function requestTo(operation: Operation): Arbitrary<Fuzzed> {
  const { method, path, parameters, bodies, isPublic } = operation;
  const drawn = parameters.map(drawnFor);
  return fc
    .record({
      values: fc.tuple(...drawn),
      body: Object.keys(bodies).length === 0 ? fc.constant(undefined) : bodyOf(bodies),
      method: fc.constantFrom(...Array(9).fill(method), method === 'GET' ? 'HEAD' : method),
      caller: callerOf(isPublic),
    })
    .map(({ values, body, method: used, caller }) => {
      const textsIn = (place: Parameter['in']) =>
        parameters.flatMap(({ name, in: where }, index) => {
          const value = values[index];
          return where === place && value ? ([[name, value.text]] as const) : [];
        });
      const target = textsIn('path').reduce((text, [name, value]) => text.replace(`{${name}}`, value), path);
      const queries = textsIn('query').map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
      const claims = [caller, ...values, body].flatMap((one) => one?.claim ?? []);
      return {
        method: used,
        target: [target, ...(queries.length > 0 ? [queries.join('&')] : [])].join('?'),
        fields: [
          ...(caller.text === '' ? [] : [['Authorization', caller.text] as const]),
          ...textsIn('header'),
          ...(body?.mediaType ? [['Content-Type', body.mediaType] as const] : []),
        ],
        body: Buffer.from(body?.text ?? ''),
        claim: CLAIMS.find((claim) => claims.includes(claim)) ?? 'inside',
      };
    });
}

function callerOf(isPublic: boolean): Arbitrary<Drawn> {
  if (isPublic) return fc.constant<Drawn>({ text: '', claim: 'inside' });
  return fc.constantFrom<Drawn>(
    ...Array<Drawn>(90).fill({ text: 'Bearer {token}', claim: 'inside' }),
    ...['', 'Bearer', 'Bearer {token}x', 'Basic {token}'].map((text): Drawn => ({ text, claim: 401 })),
    { text: 'Bearer {roleless}', claim: 403 },
  );
}

/** With four of five, as fast-check has it, few lists would have only values that are allowed together. */
function drawnFor({
  name,
  in: place,
  schema,
  required,
  example = '',
}: Parameter): Arbitrary<Drawn | undefined> {
  const good = inside(schema, name).map(textOf);
  const any = place === 'query' ? anyText : fc.string({ unit: 'grapheme-ascii' });
  const texts = {
    // A segment that makes another path of this one is no value.
    path: fc.oneof(
      { weight: 4, arbitrary: fc.constant('{known}') },
      { weight: 2, arbitrary: good },
      anyText.filter((text) => !/^(\.{0,2}|batch|changes)$/.test(text)).map(encodeURIComponent),
    ),
    query: fc.oneof({ weight: 8, arbitrary: good }, any),
    header: fc.oneof(
      { weight: 6, arbitrary: good.filter((text) => /^[\x20-\x7e]*$/.test(text)) },
      any,
      fc.constantFrom(example, '*', '"1"', 'W/"1", "2"', ''),
    ),
  }[place];
  const value = texts.map((text): Drawn => ({ text, claim: claimOf(text) }));
  return required ? value : fc.option(value, { nil: undefined, freq: 2 });

  function claimOf(text: string): Claim {
    // Only the key is refused for its form. Any value of the other documented fields is allowed.
    if (place === 'header')
      return name !== 'Idempotency-Key' || isValid(schema, text.trim()) ? 'inside' : 'outside';
    if (text === '{known}') return 'inside';
    // Only a link makes a cursor, and some values are refused beside others.
    const isZero = Number(text) === 0;
    const isJudgedBesideOthers =
      name === 'cursor' || (name === 'limit' && isZero) || (name === 'skip' && !isZero);
    if (!isJudgedBesideOthers) return standsForValue(schema, text) ? 'inside' : 'outside';
    return name === 'cursor' || standsForValue(schema, text) ? 'nothing' : 'outside';
  }
}

function bodyOf(bodies: Operation['bodies']): Arbitrary<DrawnBody> {
  const declared = fc.constantFrom(...Object.entries(bodies)).chain(([mediaType, schema]) =>
    fc
      .oneof({ weight: 3, arbitrary: inside(schema) }, { weight: 2, arbitrary: anyJson(schema) })
      .map((value) => JSON.stringify(value))
      .map((text): DrawnBody => ({ mediaType, text, claim: claimOf(schema, text) })),
  );
  const json = 'application/json';
  const refused = fc.oneof(
    fc
      .tuple(fc.constantFrom('text/plain', 'application/xml', 'json', ''), fc.string())
      .map(([mediaType, text]): DrawnBody => ({ mediaType, text, claim: 415 })),
    fc
      .string()
      .map((rest) => `{${rest}`)
      .map((text): DrawnBody => ({ mediaType: json, text, claim: claimOf(bodies[json] ?? {}, text) })),
    fc.constant<DrawnBody>({ mediaType: json, text: ' '.repeat(65_537), claim: 413 }),
  );
  return fc.oneof({ weight: 20, arbitrary: declared }, { weight: 1, arbitrary: refused });
}

/** A text that is not JSON is outside of every schema. */
function claimOf(schema: Schema, text: string): Claim {
  try {
    return isValid(schema, JSON.parse(text)) ? 'inside' : 'outside';
  } catch {
    return 'outside';
  }
}
