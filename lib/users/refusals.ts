import { Problem, type ValueFault } from '../http/problem.ts';
import { pointerTo, valuesNotAllowed } from '../http/value-faults.ts';
import { FIELDS, type UniqueName } from './fields.ts';

type ItemValue = { readonly index: number; readonly name: UniqueName };

const SOME_TAKEN = 'Some values already belong to another user. See errors.';

export function noSuchUser(): Problem {
  return new Problem('not_found_error', { detail: 'There is no user with this id.' });
}

export function emailTaken(): Problem {
  return new Problem('conflict_error', { detail: 'A user with this email already exists.' });
}

/** These values belong to another user. The refusal for the email alone has no `errors`. */
export function valuesTaken(names: readonly UniqueName[]): Problem {
  if (!names.includes('external_id')) return emailTaken();
  return new Problem('conflict_error', {
    detail: SOME_TAKEN,
    errors: names.map((name) => ({ pointer: pointerTo([name]), detail: takenBy(name) })),
  });
}

export function itemsTaken(values: readonly ItemValue[]): Problem {
  const isEmailAlone = values.every(({ name }) => name === 'email');
  return new Problem('conflict_error', {
    detail: isEmailAlone ? 'Some emails of the batch are already taken. See errors.' : SOME_TAKEN,
    errors: values.map(({ index, name }) => itemFault(index, [name], takenBy(name))),
  });
}

export function itemRepeated({ index, name }: ItemValue): Problem {
  return valuesNotAllowed([itemFault(index, [name], repeatedIn(name))]);
}

export function repeatedIn(name: UniqueName): string {
  return `must not repeat the ${FIELDS[name].uniqueAs} of an earlier item`;
}

export function itemFault(index: number, path: readonly PropertyKey[], detail: string): ValueFault {
  return { pointer: pointerTo(['items', index, ...path]), detail };
}

function takenBy(name: UniqueName): string {
  return `must not be the ${FIELDS[name].uniqueAs} of an existing user`;
}
