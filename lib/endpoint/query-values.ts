import type { ValueFault } from '../http/problem.ts';

/** The form in which some HTTP libraries send lists: `ids[]`, `ids[0]`. It would be an unknown parameter. */
const BRACKETS = /^(.*)\[\d{0,5}\]$/s;
const NO_BRACKETS = 'must not have brackets behind its name; the items of a list are separated by commas';

/**
 * The values of these parameters of a query. Repeated parameters, names with brackets and values that are not UTF-8 are
 * faults. Other parameters are ignored.
 */
export function readQuery(names: readonly string[], query: string) {
  const parsed = parseQuery(query);
  const given: Record<string, string> = {};
  const faults: ValueFault[] = [];
  const bracketed = /\[|%5b/i.test(query) ? [...parsed.keys()].map((name) => BRACKETS.exec(name)?.[1]) : [];
  for (const name of names) {
    const [value, ...others] = parsed.getAll(name);
    if (bracketed.includes(name)) faults.push({ parameter: name, detail: NO_BRACKETS });
    else if (value === undefined) continue;
    else if (others.length > 0) faults.push({ parameter: name, detail: 'must not be repeated' });
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
