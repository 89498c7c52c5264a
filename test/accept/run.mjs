import { CannotJudge, createDeployment, isUnreachable, Mismatch, UNKNOWN, USERS } from './deployment.mjs';
import { createLedger } from './ledger.mjs';
import * as reading from './reading.mjs';
import { claimsOf, hasRole, tokenSource } from './token.mjs';
import { WRITES, withWrites } from './writing.mjs';

const WITHOUT_TOKEN = {
  'Probes and the form of responses': reading.probes,
  'Callers without a token': reading.unauthenticated,
};
const READS = { List: reading.list, Read: reading.read, Changes: reading.changes };

/** Runs the checks of a profile, prints the report of each, and returns the exit code. */
export async function run(options, report) {
  const { base, profile, interrupted } = options;
  report.line(`${base.origin}${base.prefix}, profile ${profile}`);
  const known = { ...options, report, ...checksFor(report, interrupted), ...createDeployment(options) };
  let reason;
  try {
    await known.send('GET', '/health').catch((error) => {
      if (!isUnreachable(error)) return;
      const { cause, message } = error;
      throw new CannotJudge(`nothing answers there (${cause?.message || cause?.code || message})`);
    });
    await report.run(WITHOUT_TOKEN, known);
    const source = tokenSource(options.credentials);
    const token = await source.get();
    const { ask, send } = createDeployment({ ...options, token });
    await report.run({ 'Tokens and roles': withToken }, { ...known, ask, send, token, source });
  } catch (error) {
    if (!(error instanceof CannotJudge) && !interrupted?.aborted) throw error;
    reason = interrupted?.aborted ? 'it was interrupted' : error.message;
  }
  const { failed } = report.counts;
  if (reason) report.close(`${failed > 0 ? 'And not all could be judged' : 'Not judged'}: ${reason}.`);
  else report.close(failed > 0 ? 'The deployment does not hold.' : 'The deployment holds.');
  return failed > 0 ? 1 : reason ? 2 : 0;
}

async function withToken(known) {
  const { report, token, profile } = known;
  report.line(`  the caller is ${JSON.stringify(claimsOf(token)?.sub ?? 'unknown')}`);
  if (!(await isAccepted(known))) return;
  await reading.tokens(known);
  await reading.roles(known);
  if (profile === 'full') await readAndWrite(known);
  else await report.run(READS, known);
}

/**
 * Whether the service accepts the token. If it does not, it is broken, unless the token is expired, not a JWT, or without
 * the role.
 *
 * @throws {CannotJudge}
 */
async function isAccepted({ check, ask, send, token }) {
  const { status } = await send('GET', `${USERS}?limit=1`).catch(() => ({}));
  if (status === 401 && !(claimsOf(token)?.exp > Date.now() / 1000))
    throw new CannotJudge('the token is refused, and is expired or no JWT');
  if (status === 403 && !hasRole(token, 'users.read')) {
    await check('a token without the role is refused correctly', () => ask('GET', USERS, 'forbidden_error'));
    throw new CannotJudge('the token lacks users.read');
  }
  return check('the token is accepted', () => ask('GET', `${USERS}?limit=1`, 200));
}

/** Users are created before the reads, so that no check is skipped. They are deleted in any case. */
async function readAndWrite(known) {
  const { report, send, token, deleteRole } = known;
  const roles = { PATCH: 'users.write', DELETE: deleteRole };
  for (const [method, role] of Object.entries(roles)) {
    const isLacking = !hasRole(token, role) && (await send(method, UNKNOWN, { json: {} })).status === 403;
    if (isLacking) throw new CannotJudge(`the token lacks ${role}`);
  }
  // Deletes the users also after an interruption.
  const ledger = createLedger(createDeployment({ ...known, interrupted: undefined }).send);
  try {
    for (let count = 0; count < 3; count += 1)
      await send('POST', USERS, { json: { email: ledger.address() } }).catch(() => {});
    await report.run(READS, known);
    await report.run(WRITES, await withWrites({ ...known, ledger }));
  } finally {
    await report.run({ 'Cleaning up': ledger.cleanUp }, known);
  }
}

/** `check` reports whether a callback succeeded, and returns whether it did. `skip` reports why it was not called. */
function checksFor(report, interrupted) {
  return {
    async check(title, holds) {
      try {
        await holds();
        report.held(title);
        return true;
      } catch (error) {
        if (interrupted?.aborted) throw error;
        report.failed(title, reasonsOf(error));
        return false;
      }
    },
    skip: report.skipped,
  };
}

function reasonsOf(error) {
  if (error instanceof Mismatch) return error.differences;
  if (error.name === 'TimeoutError') return ['there was no response in time'];
  const cause = error.cause ? `: ${error.cause.message || error.cause.code}` : '';
  return [`${error.message}${cause}`];
}
