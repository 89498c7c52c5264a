import * as z from 'zod';
import type { ValueFault } from '../../http/problem.ts';
import { detailOf, pointerTo } from '../../http/value-faults.ts';
import { keyedValues } from '../keyed-values.ts';
import { UserCreate } from '../user.ts';
import { refuseItemsOfAtomic } from './atomic-items.ts';
import type { BatchItem, ItemFault } from './batch-item.ts';

/** Maximum number of items in a batch. */
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
    example: { email: 'ada@example.com', full_name: 'Ada Lovelace' },
  });

/** The body of batch create. With `partial`, a refused item does not prevent the others from being stored. */
export const UserBatch = z
  .object({
    items: z.array(Item).min(1, SIZE).max(MAX_BATCH_SIZE, SIZE),
    mode: z
      .enum(['atomic', 'partial'], { error: 'must be atomic or partial' })
      .default('atomic')
      .meta({ description: '`atomic` stores all items or none; `partial` stores those that can be stored.' }),
  })
  .superRefine(refuseItemsOfAtomic, { when: () => true })
  .meta({ id: 'UserBatch' });
export type UserBatch = z.output<typeof UserBatch>;

/** The faults of an item, with pointers from the root of the body. */
export function faultsOfItem(index: number, faults: readonly ItemFault[]): readonly ValueFault[] {
  return faults.map(({ path, message }) => ({
    pointer: pointerTo(['items', index, ...path]),
    detail: message,
  }));
}

/** The values that identify a batch under a key: the mode, and the values of each item, of a refused one as sent. */
export function valuesOf({ items, mode }: UserBatch): readonly unknown[] {
  return [mode, ...items.map(({ user, sent }) => keyedValues(user ?? sent))];
}
