import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readPassword } from '../../lib/settings/password.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { startHttpFront } from '../stage/http-front.ts';

const HEADER = /^x-aws-parameters-secrets-token$/i;
const TOKEN = 'session-token';

// The responses of the AWS Parameters and Secrets extension: no secret without the token of the function.
const extension = forAllTests(() =>
  startHttpFront(async ({ target, fields }) => {
    const secrets: Record<string, string> = { rds: '{"username":"svc","password":"p@ss"}', plain: 'pa"ss' };
    const SecretString = secrets[/^\/secretsmanager\/get\?secretId=(\w+)$/.exec(target)?.[1] ?? ''];
    const isFunction = fields.some(([name, value]) => HEADER.test(name) && value === TOKEN);
    const status = !isFunction ? 401 : SecretString ? 200 : 400;
    const body = JSON.stringify({ ARN: 'arn', Name: 'name', SecretString, VersionId: '1' });
    return { status, headers: {}, body: status === 200 ? body : '' };
  }),
);

const read = (passwordFrom?: string, sessionToken: string | undefined = TOKEN) =>
  readPassword({ password: 'given', passwordFrom, sessionToken });

const secret = (id: string) => `${extension.url}/secretsmanager/get?secretId=${id}`;

test('the password is SVC_POSTGRES_PASSWORD by default', async () => {
  expect(await read()).toBe('given');
});

test('a file can contain the password, followed by a line feed', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'user-management-password-'));
  const file = join(folder.path, 'password');
  writeFileSync(file, ' first \n');
  expect(await read(file)).toBe(' first ');

  writeFileSync(file, 'second');
  expect(await read(file)).toBe('second');
});

test('a missing file is an error', async () => {
  await expect(read(join(import.meta.dirname, 'none'))).rejects.toThrow('ENOENT');
});

test('the extension can return the password, as text or in the JSON of RDS', async () => {
  expect(await read(secret('rds'))).toBe('p@ss');
  expect(await read(secret('plain'))).toBe('pa"ss');
});

test('a refusal of the extension is an error without the secret', async () => {
  await expect(read(secret('none'))).rejects.toThrow(
    'the password cannot be read from SVC_POSTGRES_PASSWORD_FROM: status 400',
  );
  await expect(read(secret('rds'), '')).rejects.toThrow(
    'the password cannot be read from SVC_POSTGRES_PASSWORD_FROM: status 401',
  );
});
