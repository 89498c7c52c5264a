import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeUsers } from '../../lib/service.ts';
import { hasLongPage, UserListQuery } from '../../lib/users/list-query.ts';
import { USERS_PATH } from '../../lib/users/user.ts';
import { userListReply } from '../../lib/users/user-reply.ts';

export const listUsers = endpoint(
  {
    operationId: 'listUsers',
    summary: 'List users, oldest first by default',
    needs: 'users',
    method: 'GET',
    path: `${USERS_PATH}/`,
    role: 'users.read',
    isMemoryIntensive: hasLongPage,
    query: UserListQuery,
    reply: userListReply,
  },
  ({ query }, { userList }) => userList.read(query),
);

export const handler = /* @__PURE__ */ lambda(listUsers, composeUsers);
