import { ACCEPT_PATCH } from '../responses.mjs';
import { methods } from './probes.mjs';

const USERS = '/api/v1/users/';
const UNKNOWN_USER = `${USERS}00000000-0000-0000-0000-000000000000`;

/** Requests without a token: 401, except for OPTIONS. */
export async function unauthenticated({ check, call, answers, refuses, profile }) {
  const reads = [USERS, UNKNOWN_USER, `${USERS}changes`, `${UNKNOWN_USER}/changes`];
  await check('every read without a token is 401', async () => {
    for (const path of reads) refuses(await call('GET', path), 'unauthorized_error');
  });
  await check('HEAD without a token is 401, too', async () => {
    const answer = await call('HEAD', USERS);
    answers(answer, { status: 401, headers: { 'www-authenticate': 'Bearer', 'cache-control': 'no-store' } });
  });
  await check('the token is checked before any value', async () => {
    for (const path of [`${USERS}?limit=none`, `${USERS}no-id`, `${USERS}?cursor=x&skip=-1`])
      refuses(await call('GET', path), 'unauthorized_error');
  });
  if (profile === 'full')
    await check('every write without a token is 401, and its body is not checked', async () => {
      for (const [method, path] of [
        ['POST', USERS],
        ['POST', `${USERS}batch`],
        ['PATCH', UNKNOWN_USER],
        ['DELETE', UNKNOWN_USER],
      ])
        refuses(await call(method, path, { body: '{"email":' }), 'unauthorized_error');
    });

  await check('OPTIONS lists the methods of the users, and the media types of PATCH', async () => {
    const ofAll = await call('OPTIONS', USERS);
    answers(ofAll, { status: 204, headers: { allow: methods('GET', 'HEAD', 'POST', 'OPTIONS') } });
    const allow = methods('GET', 'HEAD', 'PATCH', 'DELETE', 'OPTIONS');
    const ofUser = await call('OPTIONS', UNKNOWN_USER);
    answers(ofUser, { status: 204, headers: { allow, 'accept-patch': ACCEPT_PATCH } });
  });
}
