import { endpoint } from '../../lib/endpoint.ts';
import { lambda } from '../../lib/lambda.ts';
import { maskedEmail } from '../../lib/observability/redaction.ts';
import { composeService } from '../../lib/service.ts';
import { emailTaken } from '../../lib/users/refusals.ts';
import { UserCreate } from '../../lib/users/user.ts';
import { createdUserReply } from '../../lib/users/user-reply.ts';

/** Stores a user with a new id, active from the start. */
export const createUser = endpoint(
  {
    operationId: 'createUser',
    summary: 'Create a user',
    kind: 'operation',
    needs: 'users',
    method: 'POST',
    path: '/api/v1/users/',
    role: 'users.write',
    body: UserCreate,
    success: 201,
    reply: createdUserReply,
    problems: [emailTaken],
  },
  async ({ body, principal }, { users, log }) => {
    const user = await users.create(body);
    log.info('user_created', {
      user_id: user.id,
      email: maskedEmail(user.email),
      subject: principal.subject,
    });
    return user;
  },
);

export const handler = /* @__PURE__ */ lambda(createUser, composeService);
