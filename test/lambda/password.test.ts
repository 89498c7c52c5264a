import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPassword } from '../../lib/settings/password.ts';

const TOKEN = 'session-token';

// The responses of the AWS Parameters and Secrets extension: no secret without the token of the function.
const extension = createServer(({ url = '', headers }, response) => {
  if (headers['x-aws-parameters-secrets-token'] !== TOKEN) return response.writeHead(401).end();
  const secrets: Record<string, string> = { rds: '{"username":"svc","password":"p@ss"}', plain: 'pa"ss' };
  const SecretString = secrets[new URL(url, 'http://localhost').searchParams.get('secretId') ?? ''];
  return SecretString
    ? response.end(JSON.stringify({ ARN: 'arn', Name: 'name', SecretString, VersionId: '1' }))
    : response.writeHead(400).end();
});

let address: string;
let folder: string;

beforeAll(async () => {
  extension.listen(0, '127.0.0.1');
  await once(extension, 'listening');
  address = `http://127.0.0.1:${(extension.address() as AddressInfo).port}/secretsmanager/get?secretId=`;
  folder = mkdtempSync(join(tmpdir(), 'user-management-password-'));
});

afterAll(() => {
  extension.close();
  rmSync(folder, { recursive: true });
});

const read = (passwordFrom?: string, sessionToken: string | undefined = TOKEN) =>
  readPassword({ password: 'given', passwordFrom, sessionToken });

test('the password is SVC_POSTGRES_PASSWORD by default', async () => {
  expect(await read()).toBe('given');
});

test('a file can contain the password, followed by a line feed', async () => {
  const file = join(folder, 'password');
  writeFileSync(file, ' first \n');
  expect(await read(file)).toBe(' first ');

  writeFileSync(file, 'second');
  expect(await read(file)).toBe('second');
});

test('a missing file is an error', async () => {
  await expect(read(join(folder, 'none'))).rejects.toThrow('ENOENT');
});

test('the extension can return the password, as text or in the JSON of RDS', async () => {
  expect(await read(`${address}rds`)).toBe('p@ss');
  expect(await read(`${address}plain`)).toBe('pa"ss');
});

test('a refusal of the extension is an error without the secret', async () => {
  await expect(read(`${address}none`)).rejects.toThrow(
    'the password cannot be read from SVC_POSTGRES_PASSWORD_FROM: status 400',
  );
  await expect(read(`${address}rds`, '')).rejects.toThrow(
    'the password cannot be read from SVC_POSTGRES_PASSWORD_FROM: status 401',
  );
});
