const USERS = '/api/v1/users/';
const SOMEBODY = `${USERS}00000000-0000-0000-0000-000000000000`;

/** A token without users.read reads nothing. */
export async function readRoles({ check, skip, call, source, refuses }) {
  const title = 'a token with users.write alone may not read (403)';
  const token = await source.narrowed('users.write');
  if (!token) return skip(title, 'the provider gives no such token');
  await check(title, async () => {
    const paths = [USERS, SOMEBODY, `${USERS}changes`, `${SOMEBODY}/changes`];
    for (const path of paths)
      refuses(await call('GET', path, { token }), 'forbidden_error', challenge('users.read'));
  });
}

/** A token without users.write writes nothing, and is refused before its values are looked at. */
export async function writeRoles({ check, skip, call, source, refuses }, report) {
  report.group('Roles of writers');
  const title = 'a token with users.read alone may not write (403)';
  const token = await source.narrowed('users.read');
  if (!token) return skip(title, 'the provider gives no such token');
  await check(title, async () => {
    for (const [method, path] of [
      ['POST', USERS],
      ['POST', `${USERS}batch`],
      ['PATCH', SOMEBODY],
      ['DELETE', SOMEBODY],
    ])
      refuses(await call(method, path, { token, json: {} }), 'forbidden_error', challenge('users.write'));
  });
}

const challenge = (role) => ({
  headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${role}"` },
});
