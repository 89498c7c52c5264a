const USERS = '/api/v1/users/';
const UNKNOWN_USER = `${USERS}00000000-0000-0000-0000-000000000000`;

/** A token without users.read cannot read. */
export async function readRoles({ check, skip, call, source, refuses }) {
  const title = 'a token with users.write alone may not read (403)';
  const token = await source.narrowed('users.write');
  if (!token) return skip(title, 'the provider gives no such token');
  await check(title, async () => {
    const paths = [USERS, UNKNOWN_USER, `${USERS}changes`, `${UNKNOWN_USER}/changes`];
    for (const path of paths)
      refuses(await call('GET', path, { token }), 'forbidden_error', challenge('users.read'));
  });
}

/** A token with only users.delete deletes, and has no other right. */
async function deleteRoles({ check, skip, call, source, refuses }) {
  const title = 'a token with users.delete alone may neither read nor write (403)';
  const token = await source.narrowed('users.delete');
  if (!token) return skip(title, 'the provider gives no such token');
  await check(title, async () => {
    refuses(await call('GET', UNKNOWN_USER, { token }), 'forbidden_error', challenge('users.read'));
    refuses(
      await call('PATCH', UNKNOWN_USER, { token, json: {} }),
      'forbidden_error',
      challenge('users.write'),
    );
    refuses(await call('DELETE', UNKNOWN_USER, { token }), 'not_found_error');
  });
  const other = 'a token with users.write alone may not delete (403)';
  const writer = await source.narrowed('users.write');
  if (!writer) return skip(other, 'the provider gives no such token');
  await check(other, async () =>
    refuses(
      await call('DELETE', UNKNOWN_USER, { token: writer }),
      'forbidden_error',
      challenge('users.delete'),
    ),
  );
}

/** A token without users.write cannot write, and is refused before its values are checked. */
export async function writeRoles(checks, report) {
  const { check, skip, call, source, refuses, deleteRole } = checks;
  report.group('Roles of writers');
  if (deleteRole === 'users.delete') await deleteRoles(checks);
  const title = 'a token with users.read alone may not write (403)';
  const token = await source.narrowed('users.read');
  if (!token) return skip(title, 'the provider gives no such token');
  await check(title, async () => {
    for (const [method, path, role = 'users.write'] of [
      ['POST', USERS],
      ['POST', `${USERS}batch`],
      ['PATCH', UNKNOWN_USER],
      ['DELETE', UNKNOWN_USER, deleteRole],
    ])
      refuses(await call(method, path, { token, json: {} }), 'forbidden_error', challenge(role));
  });
}

const challenge = (role) => ({
  headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${role}"` },
});
