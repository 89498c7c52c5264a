import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { readArguments } from './arguments.ts';
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

async function run(): Promise<ExitCode> {
  const command = readArguments(process.argv.slice(2));
  if (command.name === 'help') {
    await openStandardOutput().write(`${command.text}\n`);
    return EXIT.done;
  }
  const isEndless = command.name === 'relay' || (command.name === 'follow' && !command.once);
  if (command.name === 'relay' || command.name === 'follow') progress.dropMessages();
  const users = connect(command.url, process.env, { say: progress.say, isEndless });
  const stop = stopOnSignals();
  stop.now.addEventListener('abort', () => void endSoon());
  switch (command.name) {
    case 'import':
      return importUsers(users, command, progress, stop);
    case 'export':
      return exportUsers(users, command, progress, stop);
    case 'follow':
      return followChanges(users, command, progress, stop);
    case 'diff':
      return diffUsers(users, command, progress, stop);
    case 'sync':
      return syncUsers(users, command, progress, stop);
    case 'get':
      return getUser(users, command, stop);
    case 'changes':
      return listChanges(users, command, stop);
    case 'relay':
      return relayChanges({ ...readReceiver(command, process.env), users, options: command, progress, stop });
  }
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
