import type * as z from 'zod';
import { REPEATED } from './refusals.ts';
import type { UserBatch } from './user-batch.ts';

/**
 * Names all that is wrong with the items of a batch that is stored as a whole, unless the batch itself is. Beside refused
 * values, an unknown mode among them, also addresses that stand earlier; where there are none, PostgreSQL is asked
 * (`refuse-batch-emails.ts`).
 */
export function refuseItemsOfAtomic(batch: unknown, context: z.RefinementCtx): void {
  const { items, mode } = (batch ?? {}) as Partial<UserBatch>;
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
    const folded = surelyFolded(email);
    if (earlier.has(folded) && !isNamed) refuse(index, ['email'], REPEATED);
    earlier.add(folded);
  }

  function refuse(index: number, path: readonly PropertyKey[], message: string): void {
    context.addIssue({ code: 'custom', path: ['items', index, ...path], message });
  }
}

/** An address without the case of its ASCII letters: two of them that are alike so are alike for PostgreSQL, too. */
function surelyFolded(email: string): string {
  return email.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/**
 * An address without regard to case, alike for nearly all that PostgreSQL takes for one. Only the collation of its column
 * knows which those are: what is stored is decided there.
 */
export function nearlyFolded(email: string): string {
  return email.toUpperCase().toLowerCase();
}
