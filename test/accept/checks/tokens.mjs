import { generateKeyPairSync, sign } from 'node:crypto';
import { users } from '../responses.mjs';
import { claimsOf } from '../token.mjs';

const LIST = '/api/v1/users/?limit=1';

/** Any text other than a token of the identity provider is 401. */
export async function tokens({ check, skip, call, token, succeeds, refuses }) {
  const withHeader = (authorization) => call('GET', LIST, { token: undefined, headers: { authorization } });

  await check('the scheme may be written in any case', async () => {
    for (const scheme of ['bearer', 'BEARER'])
      succeeds(await withHeader(`${scheme} ${token}`), 200, users, { link: () => true });
  });
  await check('another scheme, and text around the token, are 401', async () => {
    for (const value of [
      `Basic ${token}`,
      'Bearer',
      `Bearer ${token} x`,
      `Bearer ${token}, Bearer ${token}`,
      token,
    ])
      refuses(await withHeader(value), 'unauthorized_error');
  });
  await check('a token in the query is ignored', async () => {
    const answer = await call('GET', `${LIST}&access_token=${token}`, { token: undefined });
    refuses(answer, 'unauthorized_error');
  });
  await check('a text that is not a token is 401', async () => {
    for (const value of ['x', 'a.b.c', '..', `${token}.`, token.slice(0, -10), 'x'.repeat(4000)])
      refuses(await withHeader(`Bearer ${value}`), 'unauthorized_error');
  });

  if (!claimsOf(token)) return skip('forged tokens are 401', 'the token is not a JWT');
  for (const [title, forged] of forgeries(token))
    await check(`${title} is 401`, async () =>
      refuses(await withHeader(`Bearer ${forged}`), 'unauthorized_error'),
    );
}

/** The real token, changed in parts that its signature does not cover, or that the signature of another key covers. */
function forgeries(token) {
  const [head, payload, signature] = token.split('.');
  const header = JSON.parse(Buffer.from(head, 'base64url').toString());
  const claims = claimsOf(token);
  const middle = Math.floor(signature.length / 2);
  const flipped = signature[middle] === 'A' ? 'B' : 'A';
  const otherSignature = signature.slice(0, middle) + flipped + signature.slice(middle + 1);
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = stranger.publicKey.export({ format: 'jwk' });
  const signedByStranger = (changes) => {
    const signed = `${encoded({ ...header, alg: 'RS256', ...changes })}.${payload}`;
    return `${signed}.${sign('sha256', Buffer.from(signed), stranger.privateKey).toString('base64url')}`;
  };
  return [
    ['a token with another signature', `${head}.${payload}.${otherSignature}`],
    ['a token with other claims', `${head}.${encoded({ ...claims, sub: 'another-client' })}.${signature}`],
    ['a token that has been prolonged', `${head}.${encoded({ ...claims, exp: 4_000_000_000 })}.${signature}`],
    ['a token without a signature', `${head}.${payload}.`],
    ['a token that says it needs none', `${encoded({ ...header, alg: 'none' })}.${payload}.`],
    ['the same with a signature', `${encoded({ ...header, alg: 'none' })}.${payload}.${signature}`],
    ["a token signed by a stranger under the provider's key ID", signedByStranger({})],
    ['a token that brings its own key', signedByStranger({ jwk: { ...jwk, alg: 'RS256', kid: header.kid } })],
  ];
}

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
