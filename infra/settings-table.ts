import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { Environment } from '../lib/settings.ts';

// Writes the README's table of settings from their declaration; with --check it only compares.
const file = join(import.meta.dirname, '../README.md');
const BEGIN = '<!-- settings: made by `node infra/settings-table.ts` -->\n';
const END = '<!-- end of settings -->';

const readme = readFileSync(file, 'utf8');
const [before, rest] = readme.split(BEGIN);
const after = rest?.slice(rest.indexOf(END));
const current = `${before}${BEGIN}${table()}${after}`;

if (!process.argv.includes('--check')) writeFileSync(file, current);
else if (current !== readme) {
  process.stderr.write('The settings in README.md are not current: run node infra/settings-table.ts\n');
  process.exitCode = 1;
}

function table(): string {
  const rows = Object.entries(Environment.shape).map(([name, schema]) => row(name, schema));
  return ['', '| setting | default | accepts | meaning |', '| --- | --- | --- | --- |', ...rows, '', ''].join(
    '\n',
  );
}

function row(name: string, schema: z.ZodType): string {
  const { shownDefault, description } = schema.meta() ?? {};
  const { value, accepts } = unwrapped(schema);
  return `| \`${name}\` | ${shownDefault ?? shown(value, schema)} | ${accepts} | ${description} |`;
}

function shown(value: unknown, schema: z.ZodType): string {
  if (value === undefined) return schema.safeParse(undefined).success ? 'unset' : '**required**';
  if (value === '') return 'empty';
  return Array.isArray(value) && value.length > 1 ? 'all of them' : `\`${value}\``;
}

/** The default around a setting, and what the setting inside accepts. */
function unwrapped(schema: z.ZodType): { value: unknown; accepts: unknown } {
  if (schema instanceof z.ZodDefault)
    return { ...unwrapped(schema.unwrap() as z.ZodType), value: schema.def.defaultValue };
  if (schema instanceof z.ZodOptional) return unwrapped(schema.unwrap() as z.ZodType);
  return { value: undefined, accepts: acceptsOf(schema) };
}

/** `describe` makes a copy, which keeps the declaration's own notes. */
function acceptsOf(schema: z.ZodType): unknown {
  return schema.meta()?.accepts;
}
