import type { CommandRun } from './arguments.ts';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';
import { UserFile } from './files/user-file.ts';
import { openOutput, openStandardOutput } from './output.ts';
import { openRefusals } from './refusal.ts';
import { MEMBERS, SyncLines } from './sync/lines.ts';
import { compareUsers, planWrites } from './sync/plan.ts';
import { aboveMax, writeChanges } from './sync/writes.ts';
import { Tasks } from './tasks.ts';

/** Users that are written at the same time. */
const MAX_CALLS = 16;

/** Makes users equal to the lines of a file. All lines are compared before the first write. */
export async function syncUsers(given: CommandRun<'sync'>): Promise<ExitCode> {
  const { options, progress } = given;
  const signal = given.stop.soon;
  const { operand: file, by, rejected, plan, dryRun, maxDeactivated } = options;
  const input = new UserFile(options, { command: 'sync', signal, member: by, used: MEMBERS });
  const refusals = await openRefusals(rejected);
  const planned =
    plan !== undefined ? await openOutput(plan, 'empty') : dryRun ? openStandardOutput() : undefined;
  const lines = new SyncLines(input, options, refusals.write);
  const run = { ...given, lines, tasks: new Tasks(MAX_CALLS, signal) };
  let [isWriting, inactive] = [false, 0];

  async function makeEqual(): Promise<void> {
    await lines.read();
    if (!lines.hasUsers) {
      await planWrites(run, [], planned);
      throw new Failure(`${file} has no users`, EXIT.wrongUse);
    }
    const found = await compareUsers(run);
    inactive = found.inactive;
    const intended = await planWrites(run, found.missing, planned);
    input.refuseChange();
    const max = maxOf(maxDeactivated, found.active);
    if (intended.deactivated > max) throw aboveMax(intended.deactivated, max, 'Nothing is written.');
    if (dryRun) return void Object.assign(lines.counts, intended);
    isWriting = true;
    await writeChanges(run, found.missing, max);
  }

  const hasStandardError = rejected !== undefined && planned === undefined;
  const count = () => Object.values(lines.counts).reduce((sum, one) => sum + one);
  progress.start(() => ({ count: count(), ...input.progress() }), hasStandardError);
  let failure: unknown = await makeEqual().catch((error) => error);
  const close = async () => void (await Promise.all([planned?.close(), refusals.close()]));
  failure ??= await close().catch((error) => error);

  const messages = [
    input.describeUnused(),
    lines.unreadable &&
      `${lines.unreadable}: the external id cannot be read. No missing user is deactivated.`,
    inactive > 0 && `Inactive users whose lines do not say so: ${inactive}. --reactivate makes them active.`,
  ];
  for (const message of failure ? [] : messages) if (message) progress.say(message);
  if (signal.aborted) progress.say('Stopped. Run the same command again to continue.');
  else if (failure) progress.say(reasonOf(failure));
  if (isWriting && failure && !signal.aborted) progress.say('Run the same command again to continue.');
  if (dryRun) progress.say('Nothing is written (--dry-run). The counts are those of the intended writes.');
  const { created, updated, deactivated, equal, refused } = lines.counts;
  progress.say(
    `created ${created}, updated ${updated}, deactivated ${deactivated}, equal ${equal}, refused ${refused}`,
  );
  if (failure) return failure instanceof Failure ? failure.exitCode : EXIT.failed;
  return refused > 0 || lines.unreadable ? EXIT.incomplete : EXIT.done;
}

/** The limit: a number, or a percentage that is rounded up, without the errors of floating point. */
function maxOf(text: string, count: number): number {
  const [, whole = '', digits = '', percent] = /^(\d+)(?:\.(\d+))?(%?)$/.exec(text) ?? [];
  if (!percent) return Number(whole);
  const divisor = 10n ** BigInt(digits.length + 2);
  return Number((BigInt(whole + digits) * BigInt(count) + divisor - 1n) / divisor);
}
