import { execFile } from 'node:child_process';
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const RULESET = join(ROOT, '.spectral.yaml');

/** The findings of Spectral with a ruleset in the committed document. */
async function findings(ruleset: string): Promise<readonly { readonly code: string }[]> {
  const spectral = join(ROOT, 'test/node_modules/@stoplight/spectral-cli/dist/index.js');
  const options = ['lint', 'infra/openapi.json', '--ruleset', ruleset, '--format', 'json', '--quiet'];
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
    const { extends: extended, rules, overrides } = parse(readFileSync(RULESET, 'utf8'));
    using folder = mkdtempDisposableSync(join(tmpdir(), 'user-management-rules-'));
    const withoutExceptions = join(folder.path, 'ruleset.json');
    const [oas, owasp] = extended;
    writeFileSync(withoutExceptions, JSON.stringify({ extends: [oas, join(ROOT, owasp)] }));
    const found = await findings(withoutExceptions);

    const exceptions = [{ rules }, ...overrides].flatMap((exception) => Object.keys(exception.rules));
    expect(new Set(found.map(({ code }) => code))).toEqual(new Set(exceptions));
  });

  test('has only what generators understand: portable patterns, no defaults in requests, examples of headers', () => {
    const { components, paths } = JSON.parse(readFileSync(join(ROOT, 'infra/openapi.json'), 'utf8'));
    const found: [name: string, value: unknown][] = [];
    JSON.stringify({ components, paths }, (name, value) => {
      found.push([name, value]);
      return value;
    });
    const valuesOf = (wanted: string) => found.flatMap(([name, value]) => (name === wanted ? [value] : []));
    const { UserCreate, UserBatch } = components.schemas;
    const bodies = [...valuesOf('requestBody'), UserCreate, UserBatch];
    type Header = { $ref?: string; example?: unknown; schema: { enum?: unknown; examples?: unknown } };
    const headers = valuesOf('headers').flatMap((all) => Object.values(all as Record<string, Header>));
    const withoutExample = headers.filter(
      ({ $ref, example, schema }) => !($ref ?? example ?? schema.enum ?? schema.examples),
    );

    expect(valuesOf('pattern').filter((pattern) => /\\[/s]|"/.test(String(pattern)))).toEqual([]);
    expect(JSON.stringify(bodies)).not.toContain('"default":');
    expect(withoutExample).toEqual([]);
  });
});
