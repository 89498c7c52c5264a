import * as z from 'zod';
import { Environment } from '../lib/settings.ts';
import { keepReadmeTable } from './readme-table.ts';

// Writes the README's table of settings from their declaration; with --check it only compares.
const rows = Object.entries(Environment.shape).map(([name, schema]) => row(name, schema));
keepReadmeTable('settings', ['setting', 'default', 'accepts', 'meaning'], rows);

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
