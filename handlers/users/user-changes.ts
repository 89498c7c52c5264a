import { cursorOfUser, UserChangesQuery } from '../../lib/changes/changes-query.ts';
import { changesReply } from '../../lib/changes/changes-reply.ts';
import { cursorExpired, noSuchUserOrChange } from '../../lib/changes/refusals.ts';
import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeChanges } from '../../lib/service.ts';
import { hasLongPage } from '../../lib/users/list-query.ts';
import { USERS_PATH, UserPath } from '../../lib/users/user.ts';

export const listUserChanges = endpoint(
  {
    operationId: 'listUserChanges',
    summary: 'Read the changes of a user, oldest first',
    needs: 'changes',
    method: 'GET',
    path: `${USERS_PATH}/{user_id}/changes`,
    role: 'users.read',
    isMemoryIntensive: hasLongPage,
    params: UserPath,
    query: UserChangesQuery,
    acrossPathAndQuery: cursorOfUser,
    reply: changesReply,
    problems: [noSuchUserOrChange, cursorExpired],
  },
  async ({ params, query }, { changes }) => changes.ofUser(params.user_id, query),
);

export const handler = /* @__PURE__ */ lambda(listUserChanges, composeChanges);
