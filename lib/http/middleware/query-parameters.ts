import type { ValueFault } from '../problem.ts';

type QueryParameters = {
  readonly given: Readonly<Record<string, string>>;
  readonly faults: readonly ValueFault[];
};

/** The known parameters of a query, decoded. Repeated parameters and values that are not UTF-8 are faults instead. */
export function readQueryParameters(query: string, known: readonly string[]): QueryParameters {
  const parsed = parseQuery(query);
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

/** URLSearchParams would remove a question mark at the beginning. */
function parseQuery(query: string): URLSearchParams {
  return new URLSearchParams(`&${query}`);
}

/** Bytes that are not UTF-8 are decoded to U+FFFD. The value then has more of these than were sent. */
function isUtf8(value: string, name: string, query: string): boolean {
  if (!value.includes('\ufffd')) return true;
  return !parseQuery(query.replace(/%EF%BF%BD|\ufffd/gi, '.'))
    .get(name)
    ?.includes('\ufffd');
}
