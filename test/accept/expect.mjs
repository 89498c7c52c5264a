/** A response differs from the expected one: one line per difference. */
export class Mismatch extends Error {
  constructor(differences) {
    super(differences.join('; '));
    this.differences = differences;
  }
}

/** @throws {Mismatch} with `text`, unless `condition` is true */
export function demand(condition, text) {
  if (!condition) throw new Mismatch([text]);
}

/**
 * The differences of a value from the expected one: a regular expression for a text, a function for any value that it
 * accepts, `undefined` for a member that must be absent, an object for exactly these members, otherwise the value
 * itself.
 */
export function differences(value, expected, place = 'it') {
  if (expected instanceof RegExp)
    return typeof value === 'string' && expected.test(value) ? [] : [differs(value, expected, place)];
  if (typeof expected === 'function') return expected(value) ? [] : [differs(value, expected.says, place)];
  if (Array.isArray(expected) && Array.isArray(value) && value.length === expected.length)
    return expected.flatMap((one, index) => differences(value[index], one, `${place}[${index}]`));
  if (isRecord(expected) && isRecord(value)) {
    const names = new Set([...Object.keys(expected), ...Object.keys(value)]);
    return [...names].flatMap((name) => differences(value[name], expected[name], `${place}.${name}`));
  }
  return Object.is(value, expected) ? [] : [differs(value, expected, place)];
}

/** Any value that `test` accepts. `says` describes it. */
export function anything(says, test) {
  return Object.assign(test, { says });
}

/** @throws {Mismatch} unless the two are equal */
export function same(value, expected, place) {
  const found = differences(value, expected, place);
  if (found.length > 0) throw new Mismatch(found);
}

const isRecord = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

function differs(value, expected, place) {
  return `${place} is ${shown(value)}, expected ${expected instanceof RegExp ? expected : shown(expected)}`;
}

function shown(value) {
  if (value === undefined) return 'absent';
  const text = typeof value === 'string' && value.startsWith('‹') ? value : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
