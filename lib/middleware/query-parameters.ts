import type { ValueFault } from '../problem.ts';

type QueryParameters = {
  readonly given: Readonly<Record<string, string>>;
  readonly faults: readonly ValueFault[];
};

/** The known parameters of a query, decoded, but for those that are given twice or are no UTF-8: these are faults. */
export function queryParameters(query: string, known: readonly string[]): QueryParameters {
  const parsed = parse(query);
  const given: Record<string, string> = {};
  const faults: ValueFault[] = [];
  for (const name of known) {
    const [value, ...others] = parsed.getAll(name);
    if (value === undefined) continue;
    if (others.length > 0) faults.push({ parameter: name, detail: 'must not be repeated' });
    else if (!isUtf8(value, name, query)) faults.push({ parameter: name, detail: 'must be UTF-8' });
    else given[name] = value;
  }
  return { given, faults };
}

/** URLSearchParams would take a question mark at the beginning for the one before the query. */
function parse(query: string): URLSearchParams {
  return new URLSearchParams(`&${query}`);
}

/** What is no UTF-8 is decoded to U+FFFD: the value has one more than were sent as such. */
function isUtf8(value: string, name: string, query: string): boolean {
  if (!value.includes('\ufffd')) return true;
  return !parse(query.replace(/%EF%BF%BD|\ufffd/gi, '.'))
    .get(name)
    ?.includes('\ufffd');
}
