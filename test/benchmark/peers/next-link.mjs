/** The link to the page after this one; undefined at the end. */
export function nextLink(users, { limit, email }) {
  if (users.length < limit || email !== undefined) return undefined;
  const { created_at, id } = users.at(-1);
  const cursor = Buffer.from(`${created_at.toISOString()} ${id}`).toString('base64url');
  return `</api/v1/users/?limit=${limit}&cursor=${cursor}>; rel="next"`;
}
