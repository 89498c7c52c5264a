import type * as z from 'zod';
import { REPEATED } from '../refusals.ts';
import type { BatchItem } from './batch-item.ts';

/**
 * Names all faults of the items of an atomic batch, unless the batch itself is faulty. If values are refused, an
 * unknown mode included, it also names repeated addresses. Otherwise PostgreSQL decides about them
 * (`refuse-batch-emails.ts`).
 */
export function refuseItemsOfAtomic(batch: unknown, context: z.RefinementCtx): void {
  const { items, mode } = (batch ?? {}) as { items?: BatchItem[]; mode?: unknown };
  const isRefused = (member: string) =>
    context.issues.some(({ path }) => path?.length === 1 && path[0] === member);
  if (mode === 'partial' || isRefused('items') || !Array.isArray(items)) return;
  if (!isRefused('mode') && !items.some(({ faults }) => faults)) return;
  const earlier = new Set<string>();
  for (const [index, { faults = [], sent }] of items.entries()) {
    for (const { path, message } of faults) refuse(index, path, message);
    const { email } = Object(sent) as { email?: unknown };
    if (typeof email !== 'string') continue;
    const isNamed = faults.some(({ path }) => path[0] === 'email');
    const folded = asciiFold(email);
    if (earlier.has(folded) && !isNamed) refuse(index, ['email'], REPEATED);
    earlier.add(folded);
  }

  function refuse(index: number, path: readonly PropertyKey[], message: string): void {
    context.addIssue({ code: 'custom', path: ['items', index, ...path], message });
  }
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
