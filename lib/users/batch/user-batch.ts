import * as z from 'zod';
import { detailOf } from '../../http/value-faults.ts';
import { foldEmail } from '../email.ts';
import { type UniqueName, uniqueNames } from '../fields.ts';
import { repeatedIn } from '../refusals.ts';
import { UserCreate, withoutDefault } from '../user.ts';

/** An item of a batch, checked by itself: the user to create, or the faults of its values. */
export type BatchItem = { readonly sent: unknown } & (
  | { readonly user: UserCreate; readonly faults?: never }
  | { readonly user?: never; readonly faults: readonly ItemFault[] }
);

type ItemFault = { readonly path: readonly PropertyKey[]; readonly message: string };

export const MAX_BATCH_SIZE = 100;
const SIZE = `must have 1 to ${MAX_BATCH_SIZE} items`;

const Item = z
  .unknown()
  .transform((sent): BatchItem => {
    const { data, error } = UserCreate.safeParse(sent, { error: detailOf });
    return data ? { user: data, sent } : { faults: error.issues, sent };
  })
  .meta({
    override: { $ref: '#/components/schemas/UserCreate' },
    example: { email: 'alan@example.com', full_name: 'Alan Turing' },
  });

/** The body of batch create. With `partial`, a refused item does not prevent the others from being stored. */
export const UserBatch = z
  .object({
    items: z.array(Item).min(1, SIZE).max(MAX_BATCH_SIZE, SIZE),
    mode: z.enum(['atomic', 'partial'], { error: 'must be atomic or partial' }).default('atomic').meta({
      description:
        '`atomic` (the default) stores all items or none; `partial` stores those that can be stored.',
      override: withoutDefault,
    }),
  })
  .superRefine(checkItemsOfAtomic, { when: () => true })
  .meta({ id: 'UserBatch' });
export type UserBatch = z.output<typeof UserBatch>;

/**
 * Names all faults of the items of an atomic batch, and repeated addresses and external ids, unless the batch itself is
 * faulty. With an unknown mode, items are checked likewise.
 */
function checkItemsOfAtomic(batch: unknown, context: z.RefinementCtx): void {
  const { items, mode } = (batch ?? {}) as { items?: BatchItem[]; mode?: unknown };
  const isRefused = (member: string) =>
    context.issues.some(({ path }) => path?.length === 1 && path[0] === member);
  if (mode === 'partial' || isRefused('items') || !Array.isArray(items)) return;
  const earlier = { email: new Set<string>(), external_id: new Set<string>() };
  for (const [index, item] of items.entries()) {
    const repeated = uniqueNames.filter((name) => isRepeated(item, name, earlier[name]));
    const faults = [
      ...(item.faults ?? []),
      ...repeated.map((name) => ({ path: [name], message: repeatedIn(name) })),
    ];
    // The faults of its external id are last.
    const rank = ({ path }: ItemFault) => Number(path[0] === 'external_id');
    for (const { path, message } of faults.toSorted((one, other) => rank(one) - rank(other)))
      context.addIssue({ code: 'custom', path: ['items', index, ...path], message });
  }
}

/** Whether the item repeats an earlier value, as sent. A fault that is already named is not named again. */
function isRepeated({ sent, faults = [] }: BatchItem, name: UniqueName, earlier: Set<string>): boolean {
  const value = (Object(sent) as Partial<Record<UniqueName, unknown>>)[name];
  if (typeof value !== 'string') return false;
  const folded = name === 'email' ? foldEmail(value) : value;
  const isKnown = earlier.has(folded);
  earlier.add(folded);
  return isKnown && !faults.some(({ path }) => path[0] === name);
}
