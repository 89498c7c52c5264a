import { isProblem, type Problem } from '../../problem.ts';
import type { User } from '../../users.ts';
import { type Batch, createItems, readBatches } from '../batches.ts';
import { EXIT, Failure } from '../failure.ts';
import { type Item, nameOf } from '../files/entry.ts';
import { refusalOf, taken } from '../refusal.ts';
import { findByKey } from '../user-keys.ts';
import { type Decision, decideChange, findHolder, isAdoptable, type SyncRun } from './decisions.ts';
import { type Line, type Values, valuesOf } from './lines.ts';

/** A gateway that changes each ETag must not keep a run in a loop. */
const MAX_ATTEMPTS = 20;
const OFF = { is_active: false } as const;

/** Writes what differs, and deactivates users that still have no line: at most `max` active users, with those of lines. */
export async function writeChanges(run: SyncRun, missing: readonly string[], max: number): Promise<void> {
  const { users, options, lines, tasks } = run;
  /** The ids of the users that this run deactivates. */
  const deactivated = new Set<string>();
  const postponed: (readonly [Line, Problem])[] = [];

  async function writeLines(): Promise<void> {
    for await (const batch of readBatches(startChanges(), async () => {}))
      await tasks.start(() => create(batch));
    await tasks.finish();
    const count = () => lines.counts.created + lines.counts.updated + lines.counts.deactivated;
    // In the opposite order, a chain of values that pass from user to user needs one round.
    for (let before = 0; postponed.length > 0 && count() > before; ) {
      before = count();
      for (const [line] of postponed.splice(0).reverse()) {
        await tasks.start(() => write(line, lines.changed.get(line.position)));
        await tasks.finish();
      }
    }
    for (const [line, problem] of postponed) await lines.refuse({ ...line, problem });
  }

  /** Starts the change of each user that differs from its line, and returns the lines without a user. */
  async function* startChanges(): AsyncGenerator<readonly Item[], void> {
    // The lines that are refused have been refused by the plan.
    for await (const line of lines.toWrite(async () => {})) {
      if (tasks.isEnded) return;
      const id = lines.changed.get(line.position);
      if (id !== undefined) await tasks.start(() => write(line, id));
      // A run that is killed leaves few such users active, because the next one counts them as deactivated.
      else if (line.values.is_active === false) await tasks.start(() => create([line]));
      else yield [line];
    }
  }

  async function create(batch: Batch): Promise<void> {
    const results = await createItems(users, batch, () => crypto.randomUUID());
    for (const [index, item] of batch.entries()) {
      const line = { ...item, values: valuesOf(item.user) };
      const { status, user, problem } = results[index] as { status: number; user?: User; problem: Problem };
      if (user) {
        lines.counts.created += 1;
        const isWanted = (read?: User) => read?.is_active && lines.find(read) === line.position;
        if (line.values.is_active === false && user.is_active)
          await change(user.id, (read) => (isWanted(read) ? OFF : undefined), false);
      } else if (status === 409) await resolve(line, problem);
      else await lines.refuse({ ...line, problem });
    }
  }

  /** Decides what becomes of a line whose user was not created, because another one has a value. */
  async function resolve(line: Line, problem: Problem): Promise<void> {
    const own = await lookUp(line);
    if (own) return write(line, own.id);
    const holder = await findHolder(run, line);
    if (holder.problem) await lines.refuse({ ...line, problem: holder.problem });
    else if (holder.user) await write(line, holder.user.id, true);
    else postponed.push([line, problem]);
  }

  /** Makes a user equal to its line. A user that is not that of the line any more is looked up again. */
  async function write(line: Line, given?: string, isAdopted = false, attempt = 1): Promise<void> {
    const id = given ?? (await lookUp(line))?.id;
    if (id === undefined) return create([line]);
    let decision = undefined as Decision | undefined;
    try {
      await change(id, (user) => {
        const isOwn = user && (isAdopted ? isAdoptable(user, line) : lines.find(user) === line.position);
        decision = isOwn ? decideChange(run, line, user) : undefined;
        return decision?.change;
      });
    } catch (error) {
      const isTaken = isProblem(error, 'conflict_error');
      const problem = isTaken ? { ...taken('email'), ...error.problem } : refusalOf(error);
      if (!problem) throw error;
      if (isTaken) postponed.push([line, problem]);
      else await lines.refuse({ ...line, problem });
      return;
    }
    if (!decision && attempt < MAX_ATTEMPTS) await write(line, undefined, false, attempt + 1);
    else if (!decision)
      throw new Failure(
        `${nameOf(line)}: its user was found ${MAX_ATTEMPTS} times, and was deleted or another one each time`,
      );
    else if (decision.problem) await lines.refuse({ ...line, problem: decision.problem });
    else if (!decision.change) lines.noteEqual(line.position);
    else lines.counts[decision.change.is_active === false ? 'deactivated' : 'updated'] += 1;
  }

  async function deactivateMissing(id: string): Promise<void> {
    let isMissing = false as boolean | undefined;
    await change(id, (user) => {
      isMissing = user?.is_active && user.external_id?.startsWith(options.prefix ?? '') && !lines.find(user);
      return isMissing ? OFF : undefined;
    });
    if (isMissing) lines.counts.deactivated += 1;
  }

  /**
   * Changes a user as it was read; `decide` gets undefined if the user is deleted. What other callers do meanwhile does not
   * raise the number of deactivations above the limit.
   */
  async function change(
    id: string,
    decide: (user: User | undefined) => Values | undefined,
    isLimited = true,
  ): Promise<void> {
    let isReserved = false;
    const release = () => {
      if (isReserved) deactivated.delete(id);
      isReserved = false;
    };
    const decideWithin = (user: User) => {
      release();
      const wanted = decide(user);
      if (!isLimited || wanted?.is_active !== false || deactivated.has(id)) return wanted;
      if (deactivated.size >= max) throw aboveMax(max + 1, max, 'Stopped.');
      isReserved = true;
      deactivated.add(id);
      return wanted;
    };
    try {
      await users.update(id, decideWithin, { attempts: MAX_ATTEMPTS });
    } catch (error) {
      release();
      if (!isProblem(error, 'not_found_error')) throw error;
      decide(undefined);
    }
  }

  async function lookUp({ values }: Line): Promise<User | undefined> {
    return findByKey(users, options.by, String(values[options.by]));
  }

  await writeLines();
  for (const id of missing) await tasks.start(() => deactivateMissing(id));
  await tasks.finish();
}

/** The failure of a run that would deactivate too many users. */
export function aboveMax(count: number, max: number, what: string): Failure {
  return new Failure(
    `${count} active users would be deactivated, and at most ${max} may be (--max-deactivated). ${what}`,
    EXIT.incomplete,
  );
}
