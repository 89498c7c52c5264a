import { endpoint } from '../../lib/endpoint.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeService } from '../../lib/service.ts';
import { UserPage } from '../../lib/users/user.ts';
import { userListReply } from '../../lib/users/user-reply.ts';

/** Lists users, oldest first. */
export const listUsers = endpoint(
  {
    operationId: 'listUsers',
    summary: 'List users, oldest first',
    kind: 'operation',
    needs: 'users',
    method: 'GET',
    path: '/api/v1/users/',
    role: 'users.read',
    query: UserPage,
    success: 200,
    reply: userListReply,
    problems: [],
  },
  async ({ query }, { users }) => users.list(query),
);

export const handler = /* @__PURE__ */ lambda(listUsers, composeService);
