import { CannotJudge, createDeployment, isUnreachable, Mismatch, UNKNOWN, USERS } from './deployment.mjs';
import { createLedger } from './ledger.mjs';
import * as reading from './reading.mjs';
import { claimsOf, hasRole, tokenSource } from './token.mjs';
import { writes } from './writing.mjs';

/** Runs the checks of a profile, prints the report of each, and returns the exit code. */
export async function run(options, report) {
  const { base, profile, interrupted } = options;
  report.line(`${base.origin}${base.prefix}, profile ${profile}`);
  const known = { ...options, ...checksFor(report, interrupted), ...createDeployment(options) };
  let reason;
  try {
    await known.send('GET', '/health').catch((error) => {
      if (!isUnreachable(error)) return;
      const { cause, message } = error;
      throw new CannotJudge(`nothing answers there (${cause?.message || cause?.code || message})`);
    });
    report.group('Probes and the form of responses');
    await reading.probes(known);
    report.group('Callers without a token');
    await reading.unauthenticated(known);
    await withToken(known, report);
  } catch (error) {
    if (!(error instanceof CannotJudge) && !interrupted?.aborted) throw error;
    reason = interrupted?.aborted ? 'it was interrupted' : error.message;
  }
  const { failed } = report.counts;
  if (reason) report.close(`${failed > 0 ? 'And not all could be judged' : 'Not judged'}: ${reason}.`);
  else report.close(failed > 0 ? 'The deployment does not hold.' : 'The deployment holds.');
  return failed > 0 ? 1 : reason ? 2 : 0;
}

async function withToken(checks, report) {
  const source = tokenSource(checks.credentials);
  const token = await source.get();
  const known = { ...checks, ...createDeployment({ ...checks, token }), token, source };
  report.group('Tokens and roles');
  report.line(`  the caller is ${JSON.stringify(claimsOf(token)?.sub ?? 'unknown')}`);
  if (!(await isAccepted(known))) return;
  await reading.tokens(known);
  if (checks.profile === 'full') await withWrites(known, report);
  else await readAll(known, report);
}

async function readAll(known, report) {
  await reading.roles(known);
  report.group('List');
  await reading.list(known);
  report.group('Read');
  await reading.read(known);
  report.group('Changes');
  await reading.changes(known);
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
async function withWrites(known, report) {
  const { send, token, deleteRole } = known;
  for (const [method, role] of [
    ['PATCH', 'users.write'],
    ['DELETE', deleteRole],
  ]) {
    const isLacking = !hasRole(token, role) && (await send(method, UNKNOWN, { json: {} })).status === 403;
    if (isLacking) throw new CannotJudge(`the token lacks ${role}`);
  }
  // Deletes the users also after an interruption.
  const ledger = createLedger(createDeployment({ ...known, interrupted: undefined }).send);
  try {
    for (let count = 0; count < 3; count += 1)
      await send('POST', USERS, { json: { email: ledger.address() } }).catch(() => {});
    await readAll(known, report);
    await writes({ ...known, ledger }, report);
  } finally {
    report.group('Cleaning up');
    await ledger.cleanUp(report);
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
