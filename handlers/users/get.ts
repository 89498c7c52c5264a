import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { preconditionFailed } from '../../lib/http/preconditions.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeUsers } from '../../lib/service.ts';
import { noSuchUser } from '../../lib/users/refusals.ts';
import { SIBLINGS_OF_USER, USERS_PATH, UserPath } from '../../lib/users/user.ts';
import { userReply } from '../../lib/users/user-reply.ts';

export const getUser = endpoint(
  {
    operationId: 'getUser',
    summary: 'Read a user',
    needs: 'users',
    method: 'GET',
    path: `${USERS_PATH}/{user_id}`,
    siblings: SIBLINGS_OF_USER,
    role: 'users.read',
    params: UserPath,
    conditional: 'reading',
    reply: userReply,
    problems: [noSuchUser, preconditionFailed],
  },
  ({ params }, { users }) => users.get(params.user_id),
);

export const handler = /* @__PURE__ */ lambda(getUser, composeUsers);
