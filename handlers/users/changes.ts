import { ChangesQuery } from '../../lib/changes/changes-query.ts';
import { changesReply } from '../../lib/changes/changes-reply.ts';
import { cursorExpired } from '../../lib/changes/refusals.ts';
import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeChanges } from '../../lib/service.ts';
import { hasLongPage } from '../../lib/users/list-query.ts';
import { USERS_PATH } from '../../lib/users/user.ts';

export const listChanges = endpoint(
  {
    operationId: 'listChanges',
    summary: 'Read the changes of all users, oldest first',
    needs: 'changes',
    method: 'GET',
    path: `${USERS_PATH}/changes`,
    waits: true,
    role: 'users.read',
    isMemoryIntensive: hasLongPage,
    query: ChangesQuery,
    reply: changesReply,
    problems: [cursorExpired],
  },
  async ({ query, waitUncounted }, { changes }) => changes.ofAll(query, waitUncounted),
);

export const handler = /* @__PURE__ */ lambda(listChanges, composeChanges);
