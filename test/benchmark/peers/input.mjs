// The checks of input for peers whose framework brings none.
const ADDRESS = /^[^@\s\p{Cc}]+@[^@\s\p{Cc}]+$/u;
const UUID = /^[\da-fA-F]{8}(-[\da-fA-F]{4}){3}-[\da-fA-F]{12}$/;

export const isUuid = (text) => UUID.test(text);

/** The values of a new user; undefined when they are not allowed. */
export function newUser(body) {
  const { email, full_name = null } = body ?? {};
  return isEmail(email) && isName(full_name) ? { email, full_name } : undefined;
}

/** The values of 1 to 100 new users; undefined when one is not allowed. */
export function newUsers(body) {
  const items = body?.items;
  if (!Array.isArray(items) || items.length < 1 || items.length > 100) return undefined;
  const users = items.map(newUser);
  return users.includes(undefined) ? undefined : users;
}

/** The fields to write; undefined when one is not allowed. */
export function changes(body) {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return undefined;
  const { email, full_name, is_active } = body;
  if (email != null && !isEmail(email)) return undefined;
  if (full_name !== undefined && !isName(full_name)) return undefined;
  if (is_active != null && typeof is_active !== 'boolean') return undefined;
  return {
    ...(email != null && { email }),
    ...(full_name !== undefined && { full_name }),
    ...(is_active != null && { is_active }),
  };
}

/** Which users a list is of; undefined when the query is not allowed. */
export function page({ limit = '100', cursor, email }) {
  if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > 1000) return undefined;
  if (email !== undefined && !isEmail(email)) return undefined;
  return { limit: Number(limit), cursor, email };
}

function isEmail(value) {
  return typeof value === 'string' && value.length <= 255 && ADDRESS.test(value);
}

function isName(value) {
  return value === null || (typeof value === 'string' && value.length <= 255);
}
