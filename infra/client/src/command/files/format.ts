import { isObject } from '../../problem.ts';
import { parseJson } from '../../response-content.ts';
import { hasListOfUsers } from './json.ts';

/** The formats of files. */
export const FORMATS = ['ndjson', 'json', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

/** Lines of which one must be an object, if lines that are not JSON come before it. */
const MAX_LINES = 100;
/** In characters: how much of a file may decide. */
const MAX_LENGTH = 2_097_152;

/** The format of a file that begins with this text; undefined if more of it must decide. */
export function detectFormat(begin: string, isWhole: boolean): Format | undefined {
  const isLast = isWhole || begin.length > MAX_LENGTH;
  const all = begin.replace(/^\ufeff/, '').split('\n', MAX_LINES + 1);
  const isUnsure = !isLast && all.length <= MAX_LINES;
  // The last line may go on.
  const lines = (isWhole ? all : all.slice(0, -1)).filter((line) => line.trim() !== '').slice(0, MAX_LINES);
  const [first] = lines;
  const text = begin.replace(/^\ufeff/, '').trimStart();
  if (text === '') return isWhole ? 'ndjson' : undefined;
  const value = first === undefined ? undefined : parseJson(first);
  if (isObject(value)) {
    if (!('users' in value && Array.isArray(value.users)) || 'email' in value) return 'ndjson';
    const isOnly = text.trimEnd() === first?.trim();
    return !isOnly ? 'ndjson' : isLast ? 'json' : undefined;
  }
  const hasObject = lines.some((line) => isObject(parseJson(line)));
  if (text[0] === '[') {
    if (value === undefined && /^\[\s*[{\]]/.test(text)) return 'json';
    return hasObject ? 'ndjson' : isUnsure ? undefined : 'json';
  }
  if (text[0] === '{') {
    if (hasListOfUsers(text)) return 'json';
    // A first line without an end in sight is a line that is too long.
    const isLine = hasObject || (first === undefined && !isWhole && isLast);
    return isLine ? 'ndjson' : isUnsure ? undefined : 'json';
  }
  if (hasObject || (value !== undefined && typeof value !== 'string')) return 'ndjson';
  return isUnsure ? undefined : 'csv';
}
