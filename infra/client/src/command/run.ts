import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { type Arguments, adviceFor, type CommandRun, type Name, readArguments } from './arguments.ts';
import { connect } from './connection.ts';
import { diffUsers } from './diff.ts';
import { exportUsers } from './export.ts';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';
import { followChanges } from './follow.ts';
import { importUsers } from './import.ts';
import { getUser, listChanges } from './look-up.ts';
import { openStandardOutput } from './output.ts';
import { createProgress } from './progress.ts';
import { readReceiver } from './receiver.ts';
import { relayChanges } from './relay.ts';
import { stopOnSignals } from './stop.ts';
import { syncUsers } from './sync.ts';

// The young generation would grow to 100 MB, because an import makes much garbage. To keep it small costs a third more
// processor time.
setFlagsFromString('--semi-space-growth-factor=1');
setFlagsFromString('--optimize-for-size');

/** In milliseconds. */
const REPORT_MS = 300;

const progress = createProgress();

const RUN: { readonly [Command in Name]: (given: CommandRun<Command>) => Promise<ExitCode> } = {
  import: importUsers,
  export: exportUsers,
  follow: followChanges,
  diff: diffUsers,
  sync: syncUsers,
  get: getUser,
  changes: listChanges,
  relay: (given) => relayChanges(given, readReceiver(given.options, process.env)),
};

async function run(): Promise<ExitCode> {
  const command = readArguments(process.argv.slice(2));
  if (typeof command === 'string') {
    await openStandardOutput().write(`${command}\n`);
    return EXIT.done;
  }
  const { name, options } = command;
  const isEndless = name === 'relay' || (name === 'follow' && !options.once);
  if (name === 'relay' || name === 'follow') progress.dropMessages();
  const users = connect(options.url, process.env, { say: progress.say, isEndless });
  const stop = stopOnSignals();
  stop.now.addEventListener('abort', () => void endSoon());
  const start = <Command extends Name>({ name, options }: Arguments<Command>) =>
    RUN[name]({ users, options, progress, stop });
  return start(command).catch((error) => {
    if (!stop.soon.aborted || error instanceof Failure) throw error;
    throw new Failure(`Stopped. ${adviceFor(name)}`);
  });
}

/** A command that is stopped at once may report what it has done. A reader or a connection that stalls does not delay the end. */
async function endSoon(): Promise<void> {
  await sleep(REPORT_MS);
  progress.say('Stopped at once. Run the same command again.');
  process.exit(EXIT.failed);
}

const code = await run().catch((error) => {
  progress.say(reasonOf(error));
  return error instanceof Failure ? error.exitCode : EXIT.failed;
});
await progress.end();
// All output has been written by now. Connections that are kept alive would delay the end.
process.exit(code);
