import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { freshKey, postingUnderKeys } from '../stage/keyed.ts';
import { blocksOf } from '../stage/page-blocks.ts';
import { copyOfProject, openFolder, removeProject } from '../stage/project-copy.ts';
import { BATCH, freshAddress, refusal, USERS, type UserBody, user } from '../stage/responses.ts';
import { runInCopy } from './run-in-copy.ts';

// Carries out the section "Add a field of a user" of CONTRIBUTING.md in a copy of the project. The name and the number of
// the field are changed, so that the project may have a `locale`.
const NAME = 'trial_locale_2';
const NUMBER = 14;

const CHECKED = 'test events tsconfig.json knip.json redocly.yaml vitest.config.ts .gitignore'.split(' ');
const PAGES = ['CHANGELOG.md', 'CONTRIBUTING.md'];
const NEW_MIGRATION = '9000-trial-locale';

/** Tests that name fields or migrations. */
const NAMING_FIELDS = [
  'test/http/openapi.test.ts',
  'test/idempotency/digests.test.ts',
  'test/users/external-id-migration.test.ts',
  'test/users/fields.test.ts',
  'test/http/plain-json.test.ts',
];

const folder = copyOfProject(openFolder(), [...CHECKED, ...PAGES]);
const pathOf = (name: string) => join(folder, name);
const textOf = (name: string) => readFileSync(pathOf(name), 'utf8');

/** Changes a file of the copy. The result undoes this, and returns a function that does it again. */
function edit(name: string, change: (text: string) => string): () => () => void {
  const before = textOf(name);
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(pathOf(name), after);
  return () => {
    writeFileSync(pathOf(name), before);
    return () => writeFileSync(pathOf(name), after);
  };
}

/** The blocks of TypeScript of the section. */
const [entry = '', migration = ''] = blocksOf('CONTRIBUTING.md', 'Add a field of a user', 2).map((block) =>
  block
    .replaceAll('locale', NAME)
    .replace('userLocale', 'trialLocale')
    .replace(/changeNumber: \d+/, `changeNumber: ${NUMBER}`),
);

/** The edits, each with a function that undoes it. */
const forget = {
  entry: edit('lib/users/fields.ts', (text) => text.replace(/^} as const/m, `${entry}$&`)),
  list: edit('lib/migrations/index.ts', (text) =>
    text
      .replace(/^\/\*\* The migrations/m, `import { trialLocale } from './${NEW_MIGRATION}.ts';\n$&`)
      .replace(/^} as const/m, `'${NEW_MIGRATION}': trialLocale,\n$&`),
  ),
  changelog: edit('CHANGELOG.md', (text) => `${text}\nMigration: \`${NEW_MIGRATION}\`.\n\n- \`${NAME}\`.\n`),
};
writeFileSync(pathOf(`lib/migrations/${NEW_MIGRATION}.ts`), migration);

const run = (program: string, ...options: readonly string[]) => runInCopy(folder, program, ...options);

const service = forAllTests(async () => {
  await run('node', 'infra/tools/openapi.ts');
  const { call, remove } = await startBuiltService({}, { main: pathOf('host/main.ts') });
  return { call, stop: () => remove().then(() => removeProject(folder)) };
});

const call: BuiltService['call'] = (...request) => service.call(...request);

/** The body of a user with a locale. The field is the last member. */
const withLocale = (email: string, locale: string) => ({ ...user({ email }), [NAME]: locale });

async function create(body: object): Promise<UserBody> {
  const email = freshAddress();
  return (await call('POST', USERS, { email, ...body })).body as UserBody;
}

describe('a new field is part of', () => {
  test('create, with the rule for its values', async () => {
    const [one, two, three] = [freshAddress(), freshAddress(), freshAddress()];
    const created = await call('POST', USERS, { email: one, [NAME]: 'en-GB' });

    expect([created.status, created.body]).toEqual([201, withLocale(one, 'en-GB')]);
    expect(Object.keys(created.body as object).at(-1)).toBe(NAME);
    expect((await call('POST', USERS, { email: two, [NAME]: null })).body).toEqual(user({ email: two }));
    expect((await call('POST', USERS, { email: three })).body).toEqual(user({ email: three }));
    expect(await call('POST', USERS, { email: freshAddress(), [NAME]: 'e' })).toEqual(
      refusal('validation_error', USERS, { errors: [`#/${NAME}`] }),
    );
  });

  test('update, read and list', async () => {
    const { id, email } = await create({ [NAME]: 'en-GB' });
    const bodies = [];
    for (const update of [{ full_name: 'Ada' }, { [NAME]: 'fr-FR' }, {}, { [NAME]: null }])
      bodies.push((await call('PATCH', USERS + id, update)).body);
    const shown = { ...withLocale(email, 'en-GB'), full_name: 'Ada' };
    const { [NAME]: _, ...cleared } = shown;

    expect(bodies).toEqual([shown, { ...shown, [NAME]: 'fr-FR' }, { ...shown, [NAME]: 'fr-FR' }, cleared]);
    await call('PATCH', USERS + id, { [NAME]: 'de-DE' });
    const read = await call('GET', USERS + id);
    expect(read.body).toEqual({ ...shown, [NAME]: 'de-DE' });
    expect((await call('GET', `${USERS}?ids=${id}`)).body).toEqual([read.body]);
  });

  test('changes, in the list of changed names', async () => {
    const { id } = await create({ [NAME]: 'en-GB' });
    for (const update of [{ [NAME]: 'fr-FR' }, { [NAME]: 'fr-FR' }, { [NAME]: null, is_active: false }])
      await call('PATCH', USERS + id, update);
    const { body } = await call('GET', `${USERS}${id}/changes`);

    const changed = (body as { data: { changed: string[] } }[]).map(({ data }) => data.changed);
    expect(changed).toEqual([[], [NAME], [], ['is_active', NAME]]);
  });

  test.each(['atomic', 'partial'])('batch create, %s', async (mode) => {
    const [one, two] = [freshAddress(), freshAddress()];
    const items = [{ email: one, [NAME]: 'en-GB' }, { email: two }];
    const { body } = await call('POST', BATCH, { items, mode });
    const users = mode === 'atomic' ? body : (body as { user: unknown }[]).map((result) => result.user);

    expect(users).toEqual([withLocale(one, 'en-GB'), user({ email: two })]);
  });

  test('the values under an idempotency key', async () => {
    const post = postingUnderKeys(call);
    const email = freshAddress();
    const bodies = [{ email, [NAME]: 'en-GB' }, { email, [NAME]: 'fr-FR' }, { email }];
    for (const path of [USERS, BATCH]) {
      for (const first of bodies) {
        const key = freshKey();
        const fresh = { ...first, email: freshAddress() };
        const bodyOf = (values: object) => (path === USERS ? values : { items: [values] });
        expect((await post(path, key, bodyOf(fresh))).status).toBe(201);
        for (const second of bodies) {
          const { status } = await post(path, key, bodyOf({ ...second, email: fresh.email }));
          expect(status).toBe(first === second ? 201 : 422);
        }
      }
    }
  });

  test('OpenAPI', () => {
    const { schemas } = JSON.parse(textOf('infra/openapi.json')).components;

    for (const name of ['UserCreate', 'UserUpdate', 'UserRead'])
      expect(JSON.stringify(schemas[name].properties[NAME])).toContain('"example":"en-GB"');
    expect(schemas.UserRead.required).not.toContain(NAME);
    expect(schemas.UserUpdate.description).toContain(`and \`${NAME}\` and leaves`);
    const { description, items } = schemas.Change.properties.data.properties.changed;
    expect(description).toContain(`\`${NAME}\``);
    expect(NAME).toMatch(new RegExp(items.pattern));
  });

  test('types and tests, of which no file must be changed', { timeout: 120_000 }, async () => {
    expect(await run('tsc')).toEqual({ code: 0, output: '' });
    const tests = await run('vitest', 'run', ...NAMING_FIELDS);
    expect(tests.code, tests.output).toBe(0);
  });
});

const CHANGELOG = ['node', 'infra/tools/pages.ts'] as const;

test.each<readonly [string, keyof typeof forget, RegExp, readonly [string, ...string[]]]>([
  ['the migration in the changelog', 'changelog', /name the migration 9000-/, CHANGELOG],
  ['the field in the changelog', 'changelog', /name the field trial_locale/, CHANGELOG],
  ['the list of migrations', 'list', /9000-trial-locale\.ts/, ['knip', '--no-config-hints']],
  [
    'npm run generate',
    'entry',
    /openapi\.json is not current/,
    ['node', 'infra/tools/openapi.ts', '--check'],
  ],
  ['the entry', 'entry', /columns of users are the fields/, ['vitest', 'run', 'test/users/fields.test.ts']],
])('a check fails without %s', { timeout: 120_000 }, async (_title, edit, message, program) => {
  const remember = forget[edit]();
  const { code, output } = await run(...program);
  remember();

  expect(code).toBe(1);
  expect(output).toMatch(message);
});
