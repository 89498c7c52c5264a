import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { preconditionFailed } from '../../lib/http/preconditions.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeUsers } from '../../lib/service.ts';
import { authorOf } from '../../lib/users/change-recording.ts';
import { emailTaken, noSuchUser, valuesTaken } from '../../lib/users/refusals.ts';
import { SIBLINGS_OF_USER, USERS_PATH, UserPath, UserUpdate } from '../../lib/users/user.ts';
import { userReply } from '../../lib/users/user-reply.ts';

export const updateUser = endpoint(
  {
    operationId: 'updateUser',
    summary: 'Change some fields of a user',
    needs: 'users',
    method: 'PATCH',
    path: `${USERS_PATH}/{user_id}`,
    siblings: SIBLINGS_OF_USER,
    role: 'users.write',
    params: UserPath,
    body: UserUpdate,
    conditional: 'writing',
    reply: userReply,
    problems: [noSuchUser, preconditionFailed, emailTaken, () => valuesTaken(['external_id'])],
  },
  async ({ params, body, preconditions, principal }, { users, log }) => {
    const user = await users.update(params.user_id, body, preconditions, authorOf(principal));
    log.info('user_updated', { user_id: user.id, subject: principal.subject });
    return user;
  },
);

export const handler = /* @__PURE__ */ lambda(updateUser, composeUsers);
