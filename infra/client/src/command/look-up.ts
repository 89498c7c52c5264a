import { isatty } from 'node:tty';
import { isProblem, WrongValue } from '../problem.ts';
import { faultOfParameter } from '../service-response.ts';
import type { User } from '../users.ts';
import type { CommandRun } from './arguments.ts';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';
import { openStandardOutput } from './output.ts';
import { findByKey, type UserKey } from './user-keys.ts';

/** Writes one user. Without `by`, the form of the text decides. */
export async function getUser({ users, options, stop }: CommandRun<'get'>): Promise<ExitCode> {
  const { operand: text, by, json } = options;
  return report(json, async () => {
    const own: UserKey | undefined = isId(text) ? 'id' : text.includes('@') ? 'email' : undefined;
    const find = (key: UserKey) => findByKey(users, key, text, { signal: stop.soon });
    // A text that cannot be an email may be an external id.
    const ignoreWrongValue = (error: unknown) => {
      if (!isWrongValue(error)) throw error;
    };
    const ofForm = async () => (own && (await find(own).catch(ignoreWrongValue))) || find('external_id');
    const user: User | undefined = await (by ? find(by) : ofForm());
    return user && { lines: [user], rows: Object.entries(user) };
  });
}

/** Writes the changes of one user. */
export async function listChanges({ users, options, stop }: CommandRun<'changes'>): Promise<ExitCode> {
  const { operand: id, json } = options;
  if (!isId(id)) throw new Failure('The id must be a UUID', EXIT.wrongUse);
  return report(json, async () => {
    const lines: object[] = [];
    const rows: unknown[][] = [['time', 'type', 'version', 'changed', 'request_id', 'actor']];
    for await (const change of users.changesOf(id, { signal: stop.soon })) {
      const { version, changed, request_id, actor } = change.data;
      lines.push(change);
      rows.push([change.time, change.type, version, changed.join(), request_id, actor]);
    }
    return { lines, rows };
  });
}

/** What is written: lines of JSON, or rows of a table. */
type Found = { readonly lines: readonly object[]; readonly rows: readonly (readonly unknown[])[] };

async function report(json: boolean, find: () => Promise<Found | undefined>): Promise<ExitCode> {
  const found = await find().catch((error) => {
    if (isProblem(error, 'not_found_error')) return undefined;
    throw isWrongValue(error) ? new Failure(reasonOf(error), EXIT.wrongUse) : error;
  });
  if (!found) throw new Failure('There is no such user.', EXIT.incomplete);
  const isTable = isatty(1) && !json;
  const lines = isTable ? drawTable(found.rows) : found.lines.map((line) => JSON.stringify(line));
  const output = openStandardOutput();
  await output.write(lines.map((line) => `${line}\n`).join(''));
  await output.close();
  return EXIT.done;
}

function isId(text: string): boolean {
  return faultOfParameter('/api/v1/users/{user_id}', 'path', { user_id: text }) === undefined;
}

function isWrongValue(error: unknown): boolean {
  return error instanceof WrongValue || isProblem(error, 'validation_error');
}

/** Columns of equal width. Characters that would control the terminal are escaped. */
function drawTable(rows: Found['rows']): readonly string[] {
  const escaped = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`;
  const visible = (value: unknown) => String(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped);
  const cells = rows.map((row) => row.map(visible));
  const widths: number[] = [];
  for (const row of cells)
    for (const [column, { length }] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, length);
  return cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
