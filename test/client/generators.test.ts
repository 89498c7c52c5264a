import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { startAcceptable } from '../accept/stage.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { openPrograms } from './programs.ts';

const DOCUMENT = join(import.meta.dirname, '../../infra/openapi.json');
const PROGRAMS = join(import.meta.dirname, 'generators/node_modules/.bin');

/** The service that a generated client calls. */
type Target = { readonly url: string; readonly token: string };

type Generator = {
  readonly command: readonly [program: string, ...args: string[]];
  /** The configuration of a generator that does not take everything as options. */
  readonly configuration?: (target: Target) => string;
  /** Creates a user, creates it again, and lists it. */
  readonly program: (target: Target) => string;
  /** The user, the problem and the users in the results. */
  readonly results: readonly [user: string, problem: string, users: string];
  /** Whether its types accept any further member. */
  readonly isOpen?: boolean;
};

/** Prints the results. Their types are those of the document, and not `any`. */
const printing = ({ results: [user, problem, users], isOpen = false }: Generator) => `
const ids: string[] = ${users}?.map(({ id }) => id) ?? [];
${isOpen ? '' : '// @ts-expect-error The document has no such member.'}
void ${user}?.name;
console.log(${user}?.full_name, ${problem}?.type, ids.length, ids[0] === ${user}?.id);`;

const GENERATORS: Readonly<Record<string, Generator>> = {
  'hey-api': {
    command: ['openapi-ts', '-i', DOCUMENT, '-o', 'hey-api', '--no-log-file'],
    program: ({ url, token }) => `
import { client } from './hey-api/client.gen.js';
import { createUser, listUsers } from './hey-api/index.js';

client.setConfig({ baseUrl: '${url}', auth: '${token}' });
const created = await createUser({ body: { email, full_name: 'Ada' } });
const again = await createUser({ body: { email } });
const listed = await listUsers({ query: { email, is_active: true } });`,
    results: ['created.data', 'again.error', 'listed.data'],
  },
  orval: {
    command: ['orval', '--config', 'orval.mjs'],
    configuration: ({ url }) =>
      `export default ${JSON.stringify({
        users: { input: DOCUMENT, output: { target: 'orval-client.ts', client: 'fetch', baseUrl: url } },
      })};`,
    program: ({ token }) => `
import { createUser, listUsers } from './orval-client.js';

const options = { headers: { authorization: 'Bearer ${token}' } };
const created = await createUser({ email, full_name: 'Ada' }, options);
const again = await createUser({ email }, options);
const listed = await listUsers({ email, is_active: true }, options);
if (created.status !== 201 || again.status !== 409 || listed.status !== 200) throw new Error('another status');`,
    results: ['created.data', 'again.data', 'listed.data'],
  },
  'swagger-typescript-api': {
    command: ['swagger-typescript-api', 'generate', '-p', DOCUMENT, '-o', '.', '--name', 'swagger-client.ts'],
    program: ({ url, token }) => `
import { Api, type HttpResponse, type Problem } from './swagger-client.js';

const headers = { authorization: 'Bearer ${token}' };
const { api } = new Api({ baseUrl: '${url}', securityWorker: () => ({ headers }) });
const created = await api.createUser({ email, full_name: 'Ada' });
const again = await api.createUser({ email }).catch((refused: HttpResponse<never, Problem>) => refused);
const listed = await api.listUsers({ email, is_active: true });`,
    results: ['created.data', 'again.error', 'listed.data'],
  },
  kubb: {
    command: ['kubb', 'generate', '--config', 'kubb.mjs'],
    configuration: () => `
import { defineConfig } from '@kubb/core';
import { pluginClient } from '@kubb/plugin-client';
import { pluginOas } from '@kubb/plugin-oas';
import { pluginTs } from '@kubb/plugin-ts';

export default defineConfig({
  root: '.',
  input: { path: '${DOCUMENT}' },
  output: { path: 'kubb', extension: { '.ts': '.js' } },
  plugins: [pluginOas(), pluginTs(), pluginClient({ client: 'fetch' })],
});`,
    program: ({ url, token }) => `
import { createUser } from './kubb/clients/createUser.js';
import { listUsers } from './kubb/clients/listUsers.js';
import type { Problem } from './kubb/types/Problem.js';

const headers = { 'Content-Type': 'application/json', authorization: 'Bearer ${token}' };
const options = { baseURL: '${url}', headers };
const created = await createUser({ email, full_name: 'Ada' }, {}, options);
// This client does not look at the status.
const again: unknown = await createUser({ email }, {}, options);
const listed = await listUsers({ email, is_active: true }, {}, options);`,
    results: ['created', '(again as Problem)', 'listed'],
  },
  oazapfts: {
    command: ['oazapfts', DOCUMENT, 'oazapfts-client.ts'],
    program: ({ url, token }) => `
import { createUser, defaults, listUsers } from './oazapfts-client.js';

Object.assign(defaults, { baseUrl: '${url}', headers: { authorization: 'Bearer ${token}' } });
const created = await createUser({ email, full_name: 'Ada' });
const again = await createUser({ email });
const listed = await listUsers({ email, isActive: true });
if (created.status !== 201 || again.status !== 409 || listed.status !== 200) throw new Error('another status');`,
    results: ['created.data', 'again.data', 'listed.data'],
  },
  'openapi-zod-client': {
    command: ['openapi-zod-client', DOCUMENT, '-o', 'zod-client.ts'],
    program: ({ url, token }) => `
import { createApiClient } from './zod-client.js';

const api = createApiClient('${url}', { axiosConfig: { headers: { authorization: 'Bearer ${token}' } } });
const created = await api.createUser({ email, full_name: 'Ada' });
const again = await api.createUser({ email }).catch((refused) => refused.response.data);
const listed = await api.listUsers({ queries: { email, is_active: true } });
// It checks what it receives, so the changes fit the document, too.
await api.listChanges({ queries: { limit: 1000 } });`,
    results: ['created', 'again', 'listed'],
    isOpen: true,
  },
};

const service = forAllTests(startAcceptable);
const { folder, write, run, remove } = openPrograms({ skipLibCheck: true });

beforeAll(async () => {
  // Some clients import a package of their generator.
  symlinkSync(join(PROGRAMS, '..'), join(folder, 'node_modules'));
  const target = { url: service.url, token: await service.tokens.issueToken({ clientId: 'generators' }) };
  for (const [name, generator] of Object.entries(GENERATORS)) {
    const { command, configuration, program } = generator;
    const [file, ...args] = command;
    if (configuration) write(`${name}.mjs`, configuration(target));
    const email = `const email = '${name}+1@example.com';\n`;
    write(`${name}-program.ts`, email + program(target) + printing(generator));
    await run(process.execPath, join(PROGRAMS, file), ...args);
  }
  return remove;
});

test('the clients of all generators compile with strict types', async () => {
  expect(await run(process.execPath, join(PROGRAMS, 'tsc'), '-p', '.')).toBe('');
});

test.each(Object.keys(GENERATORS))('the client by %s creates and lists a user', async (name) => {
  expect(await run(process.execPath, `${name}-program.js`)).toBe('Ada urn:svc:error:conflict_error 1 true\n');
});
