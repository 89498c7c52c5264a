import { batch } from './batch.mjs';
import { races, walk } from './concurrency.mjs';
import { create } from './create.mjs';
import { deletion } from './deletion.mjs';
import { feed } from './feed.mjs';
import { idempotency } from './idempotency.mjs';
import { conditions, update } from './update.mjs';

/** All checks that write, in the order of the report. */
const GROUPS = [
  ['Create', create],
  ['Update', update],
  ['Conditions of writes', conditions],
  ['Delete', deletion],
  ['Idempotency-Key', idempotency],
  ['Batch', batch],
  ['Changes of this run', feed],
  ['Walk while others write', walk],
  ['Writers that race', races],
];

/** Runs them. Each creates the users that it needs. */
export async function writes(known, report) {
  const deployment = { ...known, ...actions(known), demandsIfMatch: await demandsIfMatch(known) };
  for (const [title, group] of GROUPS) {
    report.group(title);
    await group(deployment);
  }
}

const USERS = '/api/v1/users/';

/** The requests that many checks send. */
function actions({ call, ledger }) {
  const post = (json, options = {}) => call('POST', USERS, { json, ...options });
  return {
    post,
    /** A new user, as in the response. @throws if it is not created */
    async newUser(fields = {}) {
      const { status, body } = await post({ email: ledger.address(), ...fields });
      if (status !== 201) throw new Error(`no user could be created: ${status} ${JSON.stringify(body)}`);
      return body;
    },
    /** Has a version by default, so that it works with and without SVC_REQUIRE_IF_MATCH. */
    patch: (id, json, headers = { 'if-match': '*' }) => call('PATCH', USERS + id, { json, headers }),
    remove: (id, headers = { 'if-match': '*' }) => call('DELETE', USERS + id, { headers }),
    get: (id) => call('GET', USERS + id),
  };
}

/** Whether the deployment has SVC_REQUIRE_IF_MATCH. This needs no user. */
async function demandsIfMatch({ call }) {
  const answer = await call('DELETE', `${USERS}00000000-0000-0000-0000-000000000000`).catch(() => ({}));
  return answer.status === 428;
}
