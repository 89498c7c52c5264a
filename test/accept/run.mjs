import { CannotJudge, createCall, isUnreachable } from './call.mjs';
import { changes } from './checks/changes.mjs';
import { list } from './checks/list.mjs';
import { documentation, probes } from './checks/probes.mjs';
import { read } from './checks/read.mjs';
import { readRoles, writeRoles } from './checks/roles.mjs';
import { tokens } from './checks/tokens.mjs';
import { unauthenticated } from './checks/unauthenticated.mjs';
import { writes } from './checks/writes.mjs';
import { differences, Mismatch, same } from './expect.mjs';
import { createLedger } from './ledger.mjs';
import { createAnswers, users } from './responses.mjs';
import { claimsOf, hasRole, tokenSource } from './token.mjs';

const NO_TOKEN = 'there is no token: see ACCEPT_TOKEN and ACCEPT_TOKEN_URL';

/** Runs the checks of a profile, prints the report of each, and returns the exit code. */
export async function run(options, report) {
  const { base, profile, credentials } = options;
  report.line(`${base.origin}${base.prefix}, profile ${profile}`);
  const call = createCall(options);
  const checks = { ...checksFor(report, options.interrupted), ...createAnswers(options), call, ...options };
  try {
    await ask(call);
    report.group('Probes and the form of answers');
    await probes(checks);
    await documentation(checks);
    report.group('Callers without a token');
    await unauthenticated(checks);
    await withToken(checks, report, tokenSource(credentials));
  } catch (error) {
    if (!(error instanceof CannotJudge) && !options.interrupted?.aborted) throw error;
    const reason = options.interrupted?.aborted ? 'it was interrupted' : error.message;
    report.close(
      report.counts.failed > 0 ? `And not all could be judged: ${reason}.` : `Not judged: ${reason}.`,
    );
    return report.counts.failed > 0 ? 1 : 2;
  }
  report.close(report.counts.failed > 0 ? 'The deployment does not hold.' : 'The deployment holds.');
  return report.counts.failed > 0 ? 1 : 0;
}

/** @throws {CannotJudge} if the deployment cannot be called */
async function ask(call) {
  await call('GET', '/health').catch((error) => {
    if (isUnreachable(error))
      throw new CannotJudge(
        `nothing answers there (${error.cause?.message || error.cause?.code || error.message})`,
      );
  });
}

async function withToken(checks, report, source) {
  if (!source) throw new CannotJudge(NO_TOKEN);
  const token = await source.get();
  const call = withTokenOf(checks.call, token);
  const known = { ...checks, call, token, source };
  report.group('Tokens and roles');
  report.line(`  the caller is ${JSON.stringify(claimsOf(token)?.sub ?? 'unknown')}`);
  if (!(await isAccepted(known))) return;
  await tokens(known);
  await readRoles(known);
  if (checks.profile === 'full') await withWrites(known, report);
  else await readAll(known, report);
}

const withTokenOf =
  (call, token) =>
  (method, target, options = {}) =>
    call(method, target, { token, ...options });

async function readAll(known, report) {
  report.group('List');
  await list(known);
  report.group('Read');
  await read(known);
  report.group('Changes');
  await changes(known);
}

/**
 * Whether the service accepts the token. If it does not, it is broken, unless the token is expired, not a JWT, or
 * without
 * the role.
 *
 * @throws {CannotJudge}
 */
async function isAccepted({ check, call, token, succeeds, refuses }) {
  const { status } = await call('GET', '/api/v1/users/?limit=1').catch(() => ({}));
  const claims = claimsOf(token);
  if (status === 401 && !(claims?.exp > Date.now() / 1000))
    throw new CannotJudge('the token is refused, and is expired or no JWT');
  if (status === 403 && !hasRole(token, 'users.read')) {
    await check('a token without the role is refused correctly', async () =>
      refuses(await call('GET', '/api/v1/users/?limit=1'), 'forbidden_error', {
        headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="users.read"' },
      }),
    );
    throw new CannotJudge('the token lacks users.read');
  }
  const isHeld = await check('the token is accepted', async () =>
    Boolean(succeeds(await call('GET', '/api/v1/users/?limit=1'), 200, users, { link: () => true })),
  );
  return isHeld === true;
}

/** Users are created before the reads, so that no check is skipped. They are deleted in any case. */
async function withWrites(known, report) {
  const { call, token } = known;
  if (!hasRole(token, 'users.write')) {
    const { status } = await call('PATCH', '/api/v1/users/00000000-0000-0000-0000-000000000000', {
      json: {},
    });
    if (status === 403) throw new CannotJudge('the token lacks users.write');
  }
  if (known.deleteRole === 'users.delete' && !hasRole(token, 'users.delete')) {
    const { status } = await call('DELETE', '/api/v1/users/00000000-0000-0000-0000-000000000000');
    if (status === 403) throw new CannotJudge('the token lacks users.delete');
  }
  // Deletes the users also after an interruption.
  const ledger = createLedger(withTokenOf(createCall({ ...known, interrupted: undefined }), token));
  try {
    await writeRoles(known, report);
    for (let count = 0; count < 3; count += 1)
      await call('POST', '/api/v1/users/', { json: { email: ledger.address() } }).catch(() => {});
    await readAll(known, report);
    await writes({ ...known, ledger }, report);
  } finally {
    report.group('Cleaning up');
    await ledger.cleanUp(report);
  }
}

/** `check` reports whether a callback succeeded, and returns its value. `skip` reports why it was not called. */
function checksFor(report, interrupted) {
  return {
    async check(title, holds) {
      try {
        const value = await holds();
        report.held(title);
        return value;
      } catch (error) {
        if (interrupted?.aborted) throw error;
        report.failed(title, reasonsOf(error));
        return undefined;
      }
    },
    skip: report.skipped,
    same,
    differences,
  };
}

function reasonsOf(error) {
  if (error instanceof Mismatch) return error.differences;
  if (error.name === 'TimeoutError') return ['there was no answer in time'];
  const cause = error.cause ? `: ${error.cause.message || error.cause.code}` : '';
  return [`${error.message}${cause}`];
}
