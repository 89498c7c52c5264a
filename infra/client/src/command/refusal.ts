import { type Problem, ProblemError, UnexpectedAnswer } from '../problem.ts';
import type { NewUser } from '../users.ts';
import { type Place, type Refusal, TOO_DEEP, TOO_LONG } from './files/entry.ts';
import { openOutput, openStandardError } from './output.ts';

/** Opens the output for refused lines: this path, or standard error. */
export async function openRefusals(path: string | undefined) {
  const output = path === undefined ? openStandardError() : await openOutput(path, 'empty');
  let count = 0;
  return {
    /** Writes the line of JSON that names a refused line and its problem. */
    async write(refusal: Refusal): Promise<void> {
      const entry = { ...describe(refusal), problem: withPointersOfLine(refusal.problem) };
      const writing = output.write(`${JSON.stringify(entry)}\n`);
      // Without a reader of standard error, the command goes on and fails at the end.
      await (path === undefined ? writing.catch(() => {}) : writing);
      count += 1;
    },
    /** Standard error may lack a reader of messages only. */
    close: async () => (count > 0 ? output.close() : undefined),
  };
}

/** Where a user of a file is, and the values by which it is recognized. */
export function describe({ line, index, user = {} }: Place & { readonly user?: Partial<NewUser> }) {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined);
  return { line, index, email: textOf(user.email), external_id: textOf(user.external_id) };
}

/** The problem if the service refuses the content of a request; undefined if it cannot respond. */
export function refusalOf(error: unknown): Problem | undefined {
  if (error instanceof ProblemError && [400, 413, 422].includes(error.problem.status)) return error.problem;
  // A gateway may refuse a long body by itself.
  if (error instanceof UnexpectedAnswer && error.status === 413) return TOO_LONG;
  if (error instanceof RangeError) return TOO_DEEP;
  return undefined;
}

/** The pointers of a problem are those of the batch: `#/items/3/email` becomes `#/email`. */
function withPointersOfLine(problem: Problem): Problem {
  if (!('errors' in problem) || problem.errors === undefined) return problem;
  const errors = problem.errors.map((fault) =>
    'pointer' in fault ? { ...fault, pointer: fault.pointer.replace(/^#\/items\/\d+/, '#') } : fault,
  );
  return { ...problem, errors } as Problem;
}

/** The problem of a line with a value that another user has. */
export function taken(name: 'email' | 'external_id'): Problem {
  return conflict(name, `must not be the ${name.replace('_', ' ')} of an existing user`);
}

/** The problem of a line that contradicts the users of the service. */
export function conflict(name: 'email' | 'external_id', detail: string): Problem {
  return {
    type: 'urn:svc:error:conflict_error',
    title: 'Conflict',
    status: 409,
    detail: 'Some values already belong to another user. See errors.',
    instance: '/api/v1/users/batch',
    errors: [{ pointer: `#/${name}`, detail }],
  };
}
