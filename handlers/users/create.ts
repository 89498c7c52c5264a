import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { IdempotencyHeaders } from '../../lib/idempotency/idempotency-key.ts';
import { KEY_REFUSALS } from '../../lib/idempotency/refusals.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeUsers } from '../../lib/service.ts';
import { authorOf } from '../../lib/users/change-recording.ts';
import { emailTaken, valuesTaken } from '../../lib/users/refusals.ts';
import { USERS_PATH, UserCreate } from '../../lib/users/user.ts';
import { createdUserReply } from '../../lib/users/user-reply.ts';
import { logCreated } from '../../lib/users/users.ts';

export const createUser = endpoint(
  {
    operationId: 'createUser',
    summary: 'Create a user',
    needs: 'users',
    method: 'POST',
    path: `${USERS_PATH}/`,
    role: 'users.write',
    headers: IdempotencyHeaders,
    body: UserCreate,
    success: 201,
    reply: createdUserReply,
    problems: [emailTaken, () => valuesTaken(['external_id']), ...KEY_REFUSALS],
  },
  async ({ body, headers, principal }, { users, log }) => {
    const outcome = await users.create(body, authorOf(principal), headers['Idempotency-Key']);
    if (!outcome.isReplay) logCreated(log, outcome.created, principal);
    return outcome;
  },
);

export const handler = /* @__PURE__ */ lambda(createUser, composeUsers);
