import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { IdempotencyHeaders } from '../../lib/idempotency/idempotency-key.ts';
import { KEY_REFUSALS } from '../../lib/idempotency/refusals.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeUsers } from '../../lib/service.ts';
import { createdBatchReply } from '../../lib/users/batch/batch-reply.ts';
import { UserBatch } from '../../lib/users/batch/user-batch.ts';
import { authorOf } from '../../lib/users/change-recording.ts';
import { isUser } from '../../lib/users/idempotent-creates.ts';
import { itemRepeated, itemsTaken } from '../../lib/users/refusals.ts';
import { USERS_PATH } from '../../lib/users/user.ts';
import { logCreated } from '../../lib/users/users.ts';

export const createUsers = endpoint(
  {
    operationId: 'createUsers',
    summary: 'Create up to 100 users',
    needs: 'users',
    method: 'POST',
    path: `${USERS_PATH}/batch`,
    role: 'users.write',
    headers: IdempotencyHeaders,
    body: UserBatch,
    isMemoryIntensive: () => true,
    success: 201,
    reply: createdBatchReply,
    problems: [
      () => itemRepeated({ index: 1, name: 'email' }),
      () => itemsTaken([{ index: 0, name: 'email' }]),
      () => itemsTaken([{ index: 0, name: 'external_id' }]),
      ...KEY_REFUSALS,
    ],
  },
  async ({ path, body, headers, principal }, { userBatches, log }) => {
    const outcome = await userBatches.create(body, authorOf(principal), headers['Idempotency-Key']);
    const created = outcome.isReplay ? [] : outcome.created.filter(isUser);
    for (const user of created) logCreated(log, user, principal);
    return { ...outcome, batch: body, instance: path };
  },
);

export const handler = /* @__PURE__ */ lambda(createUsers, composeUsers);
