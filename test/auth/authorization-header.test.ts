import { afterAll, describe, expect, test } from 'vitest';
import { startGate } from './gate.ts';

const gate = await startGate({ onTestFinished: afterAll });
const token = await gate.issuer.sign();
const [header = '', payload = '', signature = ''] = token.split('.');

describe('a token after the scheme Bearer, in any case and with any number of spaces', () => {
  test.each(['Bearer ', 'bEaReR ', 'Bearer   '])('%j is accepted', async (prefix) => {
    expect(await gate.judge(prefix + token)).toMatchObject({ status: 200, body: [] });
  });
});

describe('a request is 401 with', () => {
  test('no Authorization header', async () => {
    expect(await gate.judge()).toEqual(gate.refusal);
  });

  test.each([
    ['an empty header', ''],
    ['the scheme and a space', 'Bearer '],
    ['only the token', token],
    ['Basic', `Basic ${token}`],
    ['a scheme that begins with Bearer', `BearerX ${token}`],
    ['no space', `Bearer${token}`],
    ['a tab', `Bearer\t${token}`],
    ['a space before', ` Bearer ${token}`],
    ['a space after', `Bearer ${token} `],
    ['a second token', `Bearer ${token} ${token}`],
    ['two headers, joined', `Bearer ${token},Bearer ${token}`],
    ['a UUID', 'Bearer 7d4f0f6e-32dd-44a2-b7a1-0c9cdb2cd8a0'],
  ])('%s', async (_case, authorization) => {
    expect(await gate.judge(authorization)).toEqual(gate.refusal);
  });
});

describe('a token in compact form', () => {
  test.each([
    ['one part', header],
    ['two parts', token.slice(0, token.lastIndexOf('.'))],
    ['four parts', `${token}.${signature}`],
    ['an empty header', `.${payload}.${signature}`],
    ['an empty payload', `${header}..${signature}`],
    ['a dot at its end', `${token}.`],
    ['padding', `${token}==`],
    ['a character beyond base64url', `${token.slice(0, -1)}!`],
    ['a line feed in it', token.replace('.', '\n.')],
    ['a length that base64 cannot have', `${token}AAA`],
  ])('is 401 if it has %s', async (_case, malformed) => {
    await gate.expectRefused(malformed);
  });

  test('is 401 in base64 instead of base64url', async () => {
    let candidate = token;
    for (let tries = 0; !candidate.includes('_'); tries += 1) {
      candidate = await gate.issuer.sign({ jti: String(tries) });
    }

    await gate.expectAccepted(candidate);
    await gate.expectRefused(candidate.replaceAll('-', '+').replaceAll('_', '/'));
  });

  test('is 401 with a million characters', async () => {
    await gate.expectRefused(`${'A'.repeat(1_000_000)}.${payload}.${signature}`);
    await gate.expectRefused('.'.repeat(1_000_000));
  });
});
