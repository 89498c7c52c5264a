import { beforeAll, describe, expect, test } from 'vitest';
import { type Gate, startGate } from '../stage/gate.ts';

let gate: Gate;
let token: string;

beforeAll(async () => {
  gate = await startGate();
  token = await gate.issuer.sign();
  return () => gate.stop();
});

describe('a token after the scheme Bearer, in any case and with any number of spaces', () => {
  test.each(['Bearer ', 'bearer ', 'BEARER ', 'bEaReR ', 'Bearer   '])('%j is accepted', async (prefix) => {
    expect(await gate.judge(prefix + token)).toMatchObject({ status: 200, body: [] });
  });
});

describe('a request is 401 with', () => {
  test('no Authorization header', async () => {
    expect(await gate.judge()).toEqual(gate.refusal);
  });

  test.each([
    ['an empty header', () => ''],
    ['only the scheme', () => 'Bearer'],
    ['the scheme and a space', () => 'Bearer '],
    ['only the token', () => token],
    ['Basic', () => `Basic ${token}`],
    ['DPoP', () => `DPoP ${token}`],
    ['Token', () => `Token ${token}`],
    ['a scheme that begins with Bearer', () => `BearerX ${token}`],
    ['a scheme that ends with Bearer', () => `XBearer ${token}`],
    ['no space', () => `Bearer${token}`],
    ['a colon', () => `Bearer: ${token}`],
    ['an equals sign', () => `Bearer=${token}`],
    ['a tab', () => `Bearer\t${token}`],
    ['a no-break space', () => `Bearer\u00a0${token}`],
    ['a space before', () => ` Bearer ${token}`],
    ['a space after', () => `Bearer ${token} `],
    ['a line feed after', () => `Bearer ${token}\n`],
    ['a comma after', () => `Bearer ${token},`],
    ['a comma before', () => `,Bearer ${token}`],
    ['a parameter after', () => `Bearer ${token}, realm="x"`],
    ['a second token', () => `Bearer ${token} ${token}`],
    ['two headers, joined', () => `Bearer ${token},Bearer ${token}`],
    ['two headers, joined with a space', () => `Bearer ${token}, Bearer ${token}`],
    ['another scheme besides', () => `Basic YTpi, Bearer ${token}`],
    ['quotation marks', () => `Bearer "${token}"`],
    ['a percent escape', () => `Bearer ${token.replace('.', '%2E')}`],
    ['the word null', () => 'Bearer null'],
    ['a UUID', () => 'Bearer 7d4f0f6e-32dd-44a2-b7a1-0c9cdb2cd8a0'],
  ])('%s', async (_case, authorization) => {
    expect(await gate.judge(authorization())).toEqual(gate.refusal);
  });
});

describe('a token in compact form', () => {
  const parts = () => token.split('.') as [string, string, string];

  test.each([
    ['one part', () => parts()[0]],
    ['two parts', () => token.slice(0, token.lastIndexOf('.'))],
    ['two parts and a dot', () => token.slice(0, token.lastIndexOf('.') + 1)],
    ['four parts', () => `${token}.${parts()[2]}`],
    ['an empty header', () => `.${parts()[1]}.${parts()[2]}`],
    ['an empty payload', () => `${parts()[0]}..${parts()[2]}`],
    ['only dots', () => '..'],
    ['a dot at its end', () => `${token}.`],
    ['a dot at its beginning', () => `.${token}`],
    ['padding', () => `${token}==`],
    ['padding of the header', () => token.replace('.', '=.')],
    ['a character beyond base64url', () => `${token.slice(0, -1)}!`],
    ['a letter beyond ASCII', () => `${token.slice(0, -1)}é`],
    ['a NUL', () => `${token}\0`],
    ['a line feed in it', () => token.replace('.', '\n.')],
    ['a length that base64 cannot have', () => `${token}AAA`],
    ['five parts, as an encrypted token has', () => `${token}.AAAA.AAAA`],
  ])('is 401 if it has %s', async (_case, malformed) => {
    await gate.expectRefused(malformed());
  });

  test('is 401 in base64 instead of base64url', async () => {
    // A signature has 342 characters, so one of these tokens contains both.
    for (let tries = 0; tries < 50; tries += 1) {
      const candidate = await gate.issuer.sign({ jti: String(tries) });
      if (!/-.*_|_.*-/.test(candidate)) continue;
      await gate.expectAccepted(candidate);
      await gate.expectRefused(candidate.replaceAll('-', '+').replaceAll('_', '/'));
      await gate.expectRefused(candidate.replace('-', '+'));
      await gate.expectRefused(candidate.replace('_', '/'));
      return;
    }
    expect.unreachable('no token had both characters');
  });

  test('is accepted in only one of the texts that decode to the same bytes', async () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const bytes = Buffer.from(parts()[2], 'base64url');
    const twins = [...alphabet]
      .map((last) => token.slice(0, -1) + last)
      .filter((twin) => Buffer.from(twin.split('.')[2] ?? '', 'base64url').equals(bytes));

    expect(twins).toHaveLength(16);
    await gate.expectAccepted(token);
    for (const twin of twins.filter((text) => text !== token)) await gate.expectRefused(twin);
  });

  test('is 401 with a million characters', async () => {
    await gate.expectRefused(`${'A'.repeat(1_000_000)}.${parts()[1]}.${parts()[2]}`);
    await gate.expectRefused('.'.repeat(1_000_000));
  });
});
