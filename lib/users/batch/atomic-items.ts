import type * as z from 'zod';
import { repeatedIn, UNIQUE_NAMES, type UniqueName } from '../refusals.ts';
import type { BatchItem, ItemFault } from './batch-item.ts';

/**
 * Names all faults of the items of an atomic batch, unless the batch itself is faulty. If values are refused, an
 * unknown mode included, it also names repeated addresses and external ids. Otherwise PostgreSQL
 * decides about addresses (`batch-conflicts.ts`).
 */
export function refuseItemsOfAtomic(batch: unknown, context: z.RefinementCtx): void {
  const { items, mode } = (batch ?? {}) as { items?: BatchItem[]; mode?: unknown };
  const isRefused = (member: string) =>
    context.issues.some(({ path }) => path?.length === 1 && path[0] === member);
  if (mode === 'partial' || isRefused('items') || !Array.isArray(items)) return;
  if (!isRefused('mode') && !items.some(({ faults }) => faults)) return;
  const earlier = { email: new Set<string>(), external_id: new Set<string>() };
  for (const [index, item] of items.entries()) {
    const repeated = UNIQUE_NAMES.filter((name) => isRepeated(item, name, earlier[name]));
    for (const { path, message } of inOrder(item, repeated))
      context.addIssue({ code: 'custom', path: ['items', index, ...path], message });
  }
}

/** Whether the item repeats an earlier value, as sent. A fault that is already named is not named again. */
function isRepeated({ sent, faults = [] }: BatchItem, name: UniqueName, earlier: Set<string>): boolean {
  const value = (Object(sent) as Partial<Record<UniqueName, unknown>>)[name];
  if (typeof value !== 'string') return false;
  const folded = name === 'email' ? asciiFold(value) : value;
  const isKnown = earlier.has(folded);
  earlier.add(folded);
  return isKnown && !faults.some(({ path }) => path[0] === name);
}

/** The faults of an item. Those of its external id are last. */
function inOrder({ faults = [] }: BatchItem, repeated: readonly UniqueName[]): readonly ItemFault[] {
  const all = [...faults, ...repeated.map((name) => ({ path: [name], message: repeatedIn(name) }))];
  const isLast = ({ path }: ItemFault) => path[0] === 'external_id';
  return [...all.filter((fault) => !isLast(fault)), ...all.filter(isLast)];
}

/**
 * An address with its ASCII letters in lower case. Two addresses that are equal in this form are equal for PostgreSQL,
 * too.
 */
function asciiFold(email: string): string {
  return email.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/**
 * An address in a form that is equal for nearly all addresses that PostgreSQL takes for one. Only the collation of the
 * column knows which these are, so what is stored is decided there.
 */
export function approximateFold(email: string): string {
  return email.toUpperCase().toLowerCase();
}
