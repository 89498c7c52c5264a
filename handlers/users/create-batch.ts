import { authorOf } from '../../lib/changes/recording.ts';
import { endpoint } from '../../lib/http/endpoint.ts';
import { IdempotencyHeaders } from '../../lib/idempotency/idempotency-key.ts';
import { createdAndGone, keyInUse, keyReused } from '../../lib/idempotency/refusals.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeUsers } from '../../lib/service.ts';
import { createdBatchReply } from '../../lib/users/batch/batch-reply.ts';
import { UserBatch } from '../../lib/users/batch/user-batch.ts';
import { itemsRepeated, itemsTaken } from '../../lib/users/refusals.ts';
import { logCreated } from '../../lib/users/user-events.ts';

/** Stores up to 100 users by one statement. */
export const createUsers = endpoint(
  {
    operationId: 'createUsers',
    summary: 'Create up to 100 users',
    kind: 'operation',
    needs: 'users',
    method: 'POST',
    path: '/api/v1/users/batch',
    role: 'users.write',
    firstStatement: 'single',
    headers: IdempotencyHeaders,
    body: UserBatch,
    isMemoryIntensive: true,
    success: 201,
    reply: createdBatchReply,
    problems: [
      () => itemsRepeated([{ index: 1, name: 'email' }]),
      () => itemsTaken([{ index: 0, name: 'email' }]),
      () => itemsTaken([{ index: 0, name: 'external_id' }]),
      keyInUse,
      createdAndGone,
      keyReused,
    ],
  },
  async ({ path, body, headers, principal }, { users, log }) => {
    const outcome = await users.createBatch(body, authorOf(principal), headers['Idempotency-Key']);
    for (const user of outcome.isReplay ? [] : outcome.created) {
      if (typeof user !== 'string') logCreated(log, user, principal);
    }
    return { ...outcome, batch: body, instance: path };
  },
);

export const handler = /* @__PURE__ */ lambda(createUsers, composeUsers);
