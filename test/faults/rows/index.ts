import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Row } from '../run-row.ts';

/** Rows that run first, because a short run can least do without them. */
const FIRST = [
  'killed-before-answer',
  'change-feed',
  'model',
  'model-under-faults',
  'two-instances',
  'service-killed',
];

const isRow = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && 'promise' in value && 'trials' in value;

const files = readdirSync(import.meta.dirname).filter((file) => file !== basename(import.meta.filename));
const modules: readonly object[] = await Promise.all(
  files.map((file) => import(join(import.meta.dirname, file))),
);
const found = modules.flatMap((module) => Object.values(module).flat().filter(isRow));
const places = new Map(FIRST.map((name, place) => [name, place]));
const placeOf = ({ name }: Row) => places.get(name) ?? FIRST.length;

/** Every row that a file of this folder exports. */
export const rows: readonly Row[] = found.toSorted((one, other) => placeOf(one) - placeOf(other));
