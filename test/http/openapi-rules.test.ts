import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const RULESET = join(ROOT, '.spectral.yaml');

type Rules = Readonly<Record<string, string>>;
type Ruleset = {
  readonly extends: readonly string[];
  readonly rules: Rules;
  readonly overrides: readonly { readonly files: readonly string[]; readonly rules: Rules }[];
};

const ruleset: Ruleset = parse(readFileSync(RULESET, 'utf8'));

/** The findings of Spectral in the committed document: rule and place of each. */
async function findings(file: string): Promise<readonly { code: string; path: readonly string[] }[]> {
  const spectral = join(ROOT, 'test/node_modules/@stoplight/spectral-cli/dist/index.js');
  const options = ['lint', 'infra/openapi.json', '--ruleset', file, '--format', 'json', '--quiet'];
  // The exit code is 1 if there are errors, which are findings, too.
  const run = promisify(execFile)(process.execPath, [spectral, ...options], { cwd: ROOT, maxBuffer: 1e8 });
  const { stdout } = await run.catch((ended) => ended);
  return JSON.parse(stdout);
}

describe('the committed document', { timeout: 300_000 }, () => {
  test('passes the rules of Spectral and of OWASP without a warning', async () => {
    expect(await findings(RULESET)).toEqual([]);
  });

  test('needs every exception from these rules', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'user-management-rules-'));
    const withoutExceptions = join(folder, 'ruleset.json');
    const [oas, owasp = ''] = ruleset.extends;
    const from = join(ROOT, owasp);
    writeFileSync(withoutExceptions, JSON.stringify({ extends: [oas, from] }));
    const found = await findings(withoutExceptions);
    rmSync(folder, { recursive: true });

    const everywhere = Object.keys(ruleset.rules);
    const codes = new Set(found.map(({ code }) => code));
    expect(everywhere.filter((code) => !codes.has(code))).toEqual([]);
    for (const { files, rules } of ruleset.overrides) {
      const places = files.map((file) => file.split('#/')[1]?.replaceAll('/', '.').replaceAll('~1', '/'));
      for (const code of Object.keys(rules)) {
        const here = found.filter((one) => one.code === code).map(({ path }) => path.join('.'));
        const isNeeded = (place = '-') => here.some((path) => path.startsWith(place));
        expect([code, places.filter((place) => !isNeeded(place))]).toEqual([code, []]);
      }
    }
  });

  test('has only what generators understand: portable patterns, no defaults in requests, examples of headers', () => {
    const { components, paths } = JSON.parse(readFileSync(join(ROOT, 'infra/openapi.json'), 'utf8'));
    const found: [name: string, value: unknown][] = [];
    JSON.stringify({ components, paths }, (name, value) => {
      found.push([name, value]);
      return value;
    });
    const valuesOf = (wanted: string) => found.flatMap(([name, value]) => (name === wanted ? [value] : []));
    const bodies = valuesOf('requestBody').concat(
      components.schemas.UserCreate,
      components.schemas.UserBatch,
    );
    const headers = valuesOf('headers').flatMap((all) => Object.values(all as Record<string, never>));
    type Header = { $ref?: string; example?: unknown; schema: { enum?: unknown; examples?: unknown } };

    expect(valuesOf('pattern').filter((pattern) => /\\[/s]|"/.test(String(pattern)))).toEqual([]);
    expect(JSON.stringify(bodies)).not.toContain('"default":');
    expect(
      headers.filter(
        ({ $ref, example, schema }: Header) => !($ref ?? example ?? schema.enum ?? schema.examples),
      ),
    ).toEqual([]);
  });

  test('has a reason for every exception in the line above it', () => {
    const lines = readFileSync(RULESET, 'utf8').split('\n');
    const exceptions = lines.flatMap((line, index) =>
      /^ {2}(\S+: off|- files:)/.test(line) ? [lines[index - 1] ?? ''] : [],
    );
    expect(exceptions).toHaveLength(Object.keys(ruleset.rules).length + ruleset.overrides.length);
    for (const reason of exceptions) expect(reason).toMatch(/^ {2}# [A-Z].{20,}\.$/);
  });
});
