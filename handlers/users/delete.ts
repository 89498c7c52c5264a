import { endpoint } from '../../lib/endpoint.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeService } from '../../lib/service.ts';
import { preconditionOf } from '../../lib/users/precondition.ts';
import { noSuchUser, versionChanged } from '../../lib/users/refusals.ts';
import { UserPath } from '../../lib/users/user.ts';
import { deletedUserReply } from '../../lib/users/user-reply.ts';

/** Deletes a user for good. */
export const deleteUser = endpoint(
  {
    operationId: 'deleteUser',
    summary: 'Delete a user',
    kind: 'operation',
    needs: 'users',
    method: 'DELETE',
    path: '/api/v1/users/{user_id}',
    role: 'users.write',
    params: UserPath,
    conditional: true,
    success: 204,
    reply: deletedUserReply,
    problems: [noSuchUser, versionChanged],
  },
  async ({ params, ifMatch, principal }, { users, log }) => {
    await users.delete(params.user_id, preconditionOf(ifMatch));
    log.info('user_deleted', { user_id: params.user_id.toLowerCase(), subject: principal.subject });
  },
);

export const handler = /* @__PURE__ */ lambda(deleteUser, composeService);
