import fc, { type Arbitrary } from 'fast-check';
import type { RawRequest } from '../stage/raw-request.ts';
import { isValid, type Operation, type Parameter, type Schema } from './document.ts';
import { inside, outside, textOf, textOutside } from './values.ts';

/**
 * What is known of a request beforehand: all values are in their schemas, some are outside, or nothing, because no schema
 * can judge them. A number is the status of a refusal that comes before the values.
 */
export type Claim = 'inside' | 'outside' | 'nothing' | 401 | 403 | 413 | 415;

export type Fuzzed = RawRequest & { readonly claim: Claim };

type Drawn = { readonly text: string; readonly claim: Claim };
type DrawnBody = Drawn & { readonly mediaType: string };

/** The path parameter that has this value is in the path as it is. */
type Linked = Readonly<Record<string, string>>;

/**
 * Requests to the operation. `{known}` in a target stands for the id of a user that is there, and `{token}` and
 * `{roleless}` in a field for tokens. A link gives the parameters in `linked` their values.
 */
export function requestTo(operation: Operation, linked: Linked = {}): Arbitrary<Fuzzed> {
  const { method, path, parameters, bodies, isPublic } = operation;
  const values = fc.record(
    Object.fromEntries(
      parameters.map((one) => {
        const { [one.name]: text } = linked;
        return [
          one.name,
          text === undefined ? drawnFor(one) : fc.constant({ text, claim: 'inside' } as const),
        ];
      }),
    ),
  );
  const body = Object.keys(bodies).length === 0 ? fc.constant(undefined) : bodyOf(bodies);
  const queried = parameters.filter(({ in: place }) => place === 'query').map(({ name }) => name);

  return fc
    .record({ values, body, method: methodOf(method), caller: callerOf(isPublic), extra: extraOf(queried) })
    .map(({ values: drawn, body: content, method: used, caller, extra }) => {
      const textsIn = (place: Parameter['in']) =>
        parameters.flatMap(({ name, in: where }) => {
          const value = drawn[name];
          return where === place && value ? ([[name, value.text]] as const) : [];
        });
      const target = textsIn('path').reduce((text, [name, value]) => text.replace(`{${name}}`, value), path);
      const queries = textsIn('query').map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
      // A parameter that was not drawn is not repeated by the extra one.
      const isRepeated = queries.some((one) => one.startsWith(`${extra}=`));
      const more = extra === undefined || (queried.includes(extra) && !isRepeated) ? [] : [`${extra}=1`];
      const query = [...queries, ...more].join('&');
      return {
        method: used,
        target: query === '' ? target : `${target}?${query}`,
        fields: [
          ...(caller.text === '' ? [] : [['Authorization', caller.text] as const]),
          ...textsIn('header'),
          ...(content?.mediaType ? [['Content-Type', content.mediaType] as const] : []),
        ],
        body: Buffer.from(content?.text ?? ''),
        claim: claimOfAll([
          caller.claim,
          ...[...Object.values(drawn), content].flatMap((one) => one?.claim ?? []),
          ...(isRepeated ? ['outside' as const] : []),
        ]),
      };
    });
}

/** In the order in which the service refuses; what is certain of one value is lost beside one of which nothing is known. */
const CLAIMS: readonly Claim[] = [401, 403, 415, 413, 'nothing', 'outside'];

function claimOfAll(claims: readonly Claim[]): Claim {
  return CLAIMS.find((claim) => claims.includes(claim)) ?? 'inside';
}

function methodOf(method: string): Arbitrary<string> {
  const head = { weight: 1, arbitrary: fc.constant('HEAD') };
  return fc.oneof({ weight: 9, arbitrary: fc.constant(method) }, ...(method === 'GET' ? [head] : []));
}

function callerOf(isPublic: boolean): Arbitrary<Drawn> {
  const accepted = fc.constant<Drawn>({ text: isPublic ? '' : 'Bearer {token}', claim: 'inside' });
  if (isPublic) return accepted;
  const refused = fc.constantFrom<Drawn>(
    { text: '', claim: 401 },
    { text: 'Bearer', claim: 401 },
    { text: 'Bearer {token}x', claim: 401 },
    { text: 'Basic {token}', claim: 401 },
    { text: 'Bearer {roleless}', claim: 403 },
  );
  return fc.oneof({ weight: 19, arbitrary: accepted }, { weight: 1, arbitrary: refused });
}

/** The name of a further parameter of the query: an unknown one, which is ignored, or one that is there already. */
function extraOf(known: readonly string[]): Arbitrary<string | undefined> {
  return fc.oneof(
    { weight: 18, arbitrary: fc.constant(undefined) },
    { weight: 2, arbitrary: fc.constantFrom('x', 'order', 'page[size]', ...known) },
  );
}

function drawnFor({ name, in: place, schema, required, example }: Parameter): Arbitrary<Drawn | undefined> {
  if (place === 'path') return segment(name, schema);
  const value = place === 'query' ? queryValue(name, schema) : headerValue(name, schema, example);
  // With four of five, as fast-check has it, few lists would have only values that are allowed together.
  return required ? value : fc.option(value, { nil: undefined, freq: 2 });
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

/** Only the key is refused for its form. Any value of the other documented fields is allowed. */
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
  const undeclared = fc
    .tuple(fc.constantFrom('text/plain', 'application/xml', 'json', ''), fc.string())
    .map(([mediaType, text]): DrawnBody => ({ mediaType, text, claim: 415 }));
  const broken = fc
    .string()
    .filter((text) => !isObject(text))
    .map((text): DrawnBody => ({ mediaType: 'application/json', text, claim: 'outside' }));
  const large = fc.constant<DrawnBody>({
    mediaType: 'application/json',
    text: ' '.repeat(65_537),
    claim: 413,
  });
  return fc.oneof(
    { weight: 12, arbitrary: asJson('inside', inside) },
    { weight: 8, arbitrary: asJson('outside', outside) },
    { weight: 1, arbitrary: fc.oneof(undeclared, broken, large) },
  );
}

function isObject(text: string): boolean {
  try {
    return /^\s*\{/.test(JSON.stringify(JSON.parse(text)));
  } catch {
    return false;
  }
}

function claiming(claim: Claim, values: Arbitrary<unknown>): Arbitrary<Drawn> {
  return values.map((value) => ({ text: textOf(value), claim }));
}
