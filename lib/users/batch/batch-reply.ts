import * as z from 'zod';
import { type Problem, problemDocument } from '../../http/problem.ts';
import { JSON_TYPE, type Reply } from '../../http/reply.ts';
import { valuesNotAllowed } from '../../http/value-faults.ts';
import { createdAndGone } from '../../idempotency/refusals.ts';
import { uniqueNames } from '../fields.ts';
import { type CreatedItem, isUser, type Outcome } from '../idempotent-creates.ts';
import { itemFault, itemsTaken } from '../refusals.ts';
import { USERS_PATH, type User, UserRead } from '../user.ts';
import { personal, replayed, userJson } from '../user-reply.ts';
import { type BatchItem, MAX_BATCH_SIZE, type UserBatch } from './user-batch.ts';

/** A batch that was carried out, and the result of each item. */
export type CreatedBatch = Outcome<readonly CreatedItem[]> & {
  readonly batch: UserBatch;
  readonly instance: string;
};

const ItemResult = z
  .union([
    z.object({ status: z.literal(201), user: UserRead }),
    z.object({
      status: z.union([z.literal(409), z.literal(410), z.literal(422)]),
      problem: z.object({}).meta({
        override: { $ref: '#/components/schemas/Problem' },
        example: problemDocument(itemsTaken([{ index: 1, name: 'email' }]), `${USERS_PATH}/batch`),
      }),
    }),
  ])
  .meta({
    id: 'BatchItemResult',
    description:
      'Result of one item: 201 and the user, or a problem: 409 (the email or the external id is taken), 422 (values are not valid) or, ' +
      'in a replay, 410 (the user has since been deleted).',
  });

/** The users of an atomic batch, or the result of each item of a partial one, in the order of the items. */
export const createdBatchReply: Reply<CreatedBatch> = {
  mediaType: JSON_TYPE,
  schema: z.array(UserRead).max(MAX_BATCH_SIZE),
  other: {
    status: 200,
    description: 'The mode is `partial`: the result of each item, in their order.',
    schema: z.array(ItemResult).max(MAX_BATCH_SIZE),
    appliesTo: ({ batch }) => batch.mode === 'partial',
  },
  write: (value) => {
    const texts =
      value.batch.mode === 'partial' ? resultsOf(value) : value.created.filter(isUser).map(userJson);
    return `[${texts.join()}]`;
  },
  headers: { ...personal, ...replayed },
};

function resultsOf({ created, batch, instance }: CreatedBatch): readonly string[] {
  return created.map((result, index) => {
    if (isUser(result)) return `{"status":201,"user":${userJson(result)}}`;
    const problem = itemProblem(batch.items[index], index, result);
    return JSON.stringify({ status: problem.status, problem: problemDocument(problem, instance) });
  });
}

function itemProblem(
  item: BatchItem | undefined,
  index: number,
  result: Exclude<CreatedItem, User>,
): Problem {
  if (result === 'gone') return createdAndGone();
  if (item?.faults)
    return valuesNotAllowed(item.faults.map(({ path, message }) => itemFault(index, path, message)));
  // What was taken is not stored with a key, so a replay names all values that may have been.
  const mayBeTaken = uniqueNames.filter((name) => item?.user[name] !== null);
  const names = result === 'refused' ? mayBeTaken : result.taken;
  return itemsTaken(names.map((name) => ({ index, name })));
}
