import type { UserCreate } from '../user.ts';

/** An item of a batch, checked by itself: the user to create, or the faults of its values. */
export type BatchItem = { readonly sent: unknown } & (
  | { readonly user: UserCreate; readonly faults?: never }
  | { readonly user?: never; readonly faults: readonly ItemFault[] }
);

/** A fault of an item: its place in the item, and the rule. */
export type ItemFault = { readonly path: readonly PropertyKey[]; readonly message: string };
