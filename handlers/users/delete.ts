import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { preconditionFailed } from '../../lib/http/preconditions.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeUsers } from '../../lib/service.ts';
import { authorOf } from '../../lib/users/change-recording.ts';
import { noSuchUser } from '../../lib/users/refusals.ts';
import { SIBLINGS_OF_USER, USERS_PATH, UserPath } from '../../lib/users/user.ts';
import { deletedUserReply } from '../../lib/users/user-reply.ts';

export const deleteUser = endpoint(
  {
    operationId: 'deleteUser',
    summary: 'Delete a user',
    needs: 'users',
    method: 'DELETE',
    path: `${USERS_PATH}/{user_id}`,
    siblings: SIBLINGS_OF_USER,
    role: 'users.delete',
    params: UserPath,
    conditional: 'writing',
    success: 204,
    reply: deletedUserReply,
    problems: [noSuchUser, preconditionFailed],
  },
  async ({ params, preconditions, principal }, { users, log }) => {
    await users.delete(params.user_id, preconditions, authorOf(principal));
    log.info('user_deleted', { user_id: params.user_id, subject: principal.subject });
  },
);

export const handler = /* @__PURE__ */ lambda(deleteUser, composeUsers);
