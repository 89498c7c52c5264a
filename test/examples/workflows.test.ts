import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { startBalancer } from '../lab/stage/balancer.ts';
import { startFunctions } from '../parity/ways.ts';
import { callerOf } from '../stage/caller.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { startHttpFront } from '../stage/http-front.ts';
import { blockOf } from '../stage/page-blocks.ts';
import { repeat } from '../stage/until.ts';
import { cursorOf, respect, type Step, shell } from './respect.ts';
import { startTwoInstances } from './two-instances.ts';

const INFRA = join(import.meta.dirname, '../../infra');
const FILE = 'infra/workflows.arazzo.yaml';
const PAGE = readFileSync(join(INFRA, 'docs/api.md'), 'utf8');
const COMMAND = blockOf('infra/docs/api.md', 'Workflows').trimEnd();

type Criterion = { readonly condition: string; readonly type?: string };
type Workflow = {
  readonly workflowId: string;
  readonly steps: readonly { readonly stepId: string; readonly successCriteria: readonly Criterion[] }[];
};
type Workflows = {
  readonly sourceDescriptions: readonly { readonly url: string }[];
  readonly workflows: readonly Workflow[];
};

const arazzo: Workflows = parse(readFileSync(join(INFRA, 'workflows.arazzo.yaml'), 'utf8'));
const names = arazzo.workflows.map(({ workflowId }) => workflowId);

const instances = forAllTests(startTwoInstances);
const functions = forAllTests(() => startFunctions(instances.environment));
const front = forAllTests(() => startHttpFront(functions.send));
const nginx = forAllTests(() => startBalancer('nginx', instances.ports));
const WAYS = { 'the host': instances, 'the functions': front, nginx };
let token: string;

beforeAll(async () => {
  token = await instances.issueToken({ clientId: 'workflows' });
});

let runs = 0;

/** Runs workflows by the command of the page, with other values where they are given, and more options at its end. */
function runAt(
  url: string,
  { page = 'first', since = 'now', options = '', file = FILE }: Readonly<Record<string, string>> = {},
) {
  runs += 1;
  // npx, which takes half of the time of a short run, runs only the command as it is.
  const command = (options ? COMMAND.replace('npx ', '') : COMMAND)
    .replace(FILE, file)
    .replace('http://127.0.0.1:8000', url)
    .replace('$(date +%s)', `run-${runs}`)
    .replace('page=first', `page=${page}`)
    .replace('since=now', `since=${since}`);
  return respect(`${command} ${options}`, { TOKEN: token });
}

test('the linters of Redocly and Spectral have no finding', async () => {
  const { code, printed } = await shell(`redocly lint ${FILE} --format=json 2>/dev/null`);
  const findings = await shell(`spectral lint ${FILE} --format=json --fail-severity=hint --quiet`);

  expect([code, JSON.parse(printed).totals]).toEqual([0, { errors: 0, warnings: 0, ignored: 0 }]);
  expect([findings.code, JSON.parse(findings.printed)]).toEqual([0, []]);
});

test('there are twelve workflows, and the page names each', () => {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith('Workflows\n')) ?? '';
  const named = [...section.matchAll(/`([a-z]+(?:-[a-z]+)+)`/g)].map(([, name]) => name);

  expect(names).toHaveLength(12);
  expect(named.toSorted()).toEqual(names.toSorted());
});

test('each criterion fails its workflow if its opposite is expected', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-workflows-'));
  const file = join(folder, 'wrong.arazzo.yaml');
  const wrong = arazzo.workflows.flatMap(withOneWrongCriterion);
  const sourceDescriptions = arazzo.sourceDescriptions.map((source) => ({
    ...source,
    url: join(INFRA, source.url),
  }));
  writeFileSync(
    file,
    stringify({ ...arazzo, sourceDescriptions, workflows: wrong }, { aliasDuplicateObjects: false }),
  );
  const { code, passed, failed } = await runAt(instances.url, { file });
  rmSync(folder, { recursive: true });

  // The inputs of the page do not lead to these steps.
  const isReached = (name: string) => !/_(next-page|read-named)_/.test(name);
  const all = wrong.map(({ workflowId }) => workflowId);
  expect(code).toBe(1);
  expect(failed).toEqual(all.filter(isReached));
  expect(passed).toEqual(all.filter((name) => !isReached(name)));
  expect(failed.length).toBeGreaterThan(100);
});

/** A workflow as often as it has criteria: each time, another one is the opposite of what it is. */
function withOneWrongCriterion(workflow: Workflow): readonly Workflow[] {
  const { workflowId, steps } = workflow;
  const places = steps.flatMap(({ stepId, successCriteria }) =>
    successCriteria.map((_, n) => ({ stepId, n })),
  );
  return places.map((place) => {
    const changed = steps.map((step) => ({
      ...step,
      successCriteria: step.successCriteria.map((criterion, n) =>
        step.stepId === place.stepId && n === place.n ? opposite(criterion) : criterion,
      ),
    }));
    const name = `${workflowId}_${place.stepId}_${place.n}`;
    const text = JSON.stringify({ ...workflow, workflowId: name, steps: changed });
    return JSON.parse(text.replaceAll('{$inputs.run}', `{$inputs.run}-${place.stepId}-${place.n}`));
  });
}

const OPPOSITES: Readonly<Record<string, string>> = { '==': '!=', '!=': '==', '<=': '>', '>': '<=' };

function opposite({ condition, ...rest }: Criterion): Criterion {
  if (rest.type === 'regex') return { ...rest, condition: `^(?!.*${condition.replace(/^\^/, '')})` };
  return { ...rest, condition: condition.replace(/ (==|!=|<=|>) /, (_, sign) => ` ${OPPOSITES[sign]} `) };
}

describe.each(Object.entries(WAYS))('through %s', (_, way) => {
  const call = (...request: Parameters<ReturnType<typeof callerOf>>) =>
    callerOf(way.url, { sign: async () => token })(...request);
  const create = async (email: string) =>
    (await call('POST', '/api/v1/users/', { email })).body as { id: string };
  const bodyOf = (step: Step | undefined) =>
    step?.response.body as readonly { id: string; subject: string }[];

  test('the command of the page runs all workflows, and all hold', async () => {
    const { code, printed, passed, failed } = await runAt(way.url);

    expect([code, failed], printed).toEqual([0, []]);
    expect(passed).toEqual(names);
  });

  test('page-through-all, once for each page, gives every user once', async () => {
    await instances.database.query('DELETE FROM users');
    const items = Array.from({ length: 25 }, (_, n) => ({ email: `page-${runs}-${n}@example.com` }));
    await call('POST', '/api/v1/users/batch', { items });
    const read: string[] = [];
    const pages: number[] = [];
    for (let page: string | undefined = 'first'; page; ) {
      const { code, printed, steps } = await runAt(way.url, { page, options: '--workflow page-through-all' });
      expect(code, printed).toBe(0);
      const last = steps.at(-1);
      read.push(...bodyOf(last).map(({ id }) => id));
      pages.push(bodyOf(last).length);
      page = cursorOf(last);
    }

    const { body: all } = await call('GET', '/api/v1/users/?limit=1000');
    expect(read).toEqual((all as { id: string }[]).map(({ id }) => id));
    expect(pages).toEqual([10, 10, 5]);
  });

  test('mirror-by-the-changes, once for each change, gives what was written', async () => {
    const follow = async (since: string | undefined) => {
      const run = await runAt(way.url, {
        since: since as string,
        options: '--workflow mirror-by-the-changes',
      });
      expect(run.code, run.printed).toBe(0);
      return run.steps;
    };
    let steps = await follow('now');
    expect(bodyOf(steps[0])).toEqual([]);
    const kept = await create(`kept-${runs}@example.com`);
    const deleted = await create(`deleted-${runs}@example.com`);
    await call('DELETE', `/api/v1/users/${deleted.id}`);
    const copied: unknown[] = [];
    do {
      steps = await follow(cursorOf(steps[0]));
      copied.push([...bodyOf(steps[0]).map(({ subject }) => subject), ...bodyOf(steps[1] ?? steps[0])]);
    } while (bodyOf(steps[0]).length > 0);

    expect(copied).toEqual([[kept.id, kept], [deleted.id], [deleted.id], []]);
  });

  test('wait-for-changes gets the change that comes while it waits', async () => {
    const created: string[] = [];
    const waiting = runAt(way.url, { options: '--workflow wait-for-changes' });
    const stop = repeat(async () => {
      created.push((await create(`wait-${runs}-${created.length}@example.com`)).id);
      await sleep(100);
    });
    const { code, printed, steps } = await waiting.finally(stop);

    expect(code, printed).toBe(0);
    const [first] = bodyOf(steps[0]);
    expect(created).toContain(first?.subject);
  });
});
