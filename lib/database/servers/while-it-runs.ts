import type { Settings } from '../../settings.ts';
import { isOfPostgres } from '../faults.ts';
import { abandon, clientConfig } from './connection.ts';
import { Session, type SessionIdentity } from './session.ts';

/** In milliseconds. */
const PAUSE = 2000;
const TIME_LIMIT = 1000;

/** An answer may be on its way while PostgreSQL runs the statement no more: once is no proof. */
const PROOF = 2;

/**
 * Waits for the answer to a statement that may take long. Asks PostgreSQL meanwhile, by another connection, whether it
 * still runs it; when it does not, or is out of reach, the answer is lost and `giveUp` is called.
 *
 * @param identity of the session that runs it; without one, only a host that is out of reach counts
 * @param giveUp makes `answer` reject
 */
export async function whileItRuns<Answer>(
  postgres: Settings['postgres'],
  identity: SessionIdentity | undefined,
  answer: Promise<Answer>,
  giveUp: () => void,
): Promise<Answer> {
  let isAnswered = false;
  let isLost = false;
  let timer = setTimeout(look, PAUSE, 0);

  async function look(misses: number): Promise<void> {
    const missed = (await isRunning(postgres, identity)) ? 0 : misses + 1;
    if (isAnswered) return;
    if (missed === PROOF) {
      isLost = true;
      giveUp();
    } else timer = setTimeout(look, PAUSE, missed);
  }

  try {
    return await answer;
  } catch (fault) {
    throw isLost
      ? new Error('the answer to a statement was lost: the network has failed', { cause: fault })
      : fault;
  } finally {
    isAnswered = true;
    clearTimeout(timer);
  }
}

async function isRunning(
  postgres: Settings['postgres'],
  identity: SessionIdentity | undefined,
): Promise<boolean> {
  const asking = new Session(clientConfig(postgres), postgres);
  const limit = setTimeout(() => abandon(asking), TIME_LIMIT);
  let isInReach = false;
  try {
    await asking.openInTime(TIME_LIMIT);
    isInReach = true;
    // A server that started at another time is another one, of the same name.
    if (!identity || identity.serverStarted !== asking.identity?.serverStarted) return true;
    const { rowCount } = await asking.query(
      "select from pg_stat_activity where pid = $1 and state = 'active'",
      [identity.processId],
    );
    return rowCount !== 0;
  } catch (fault) {
    // PostgreSQL, or a pooler, is there, though it has nothing left for the question.
    return isInReach || isOfPostgres(fault);
  } finally {
    clearTimeout(limit);
    abandon(asking);
  }
}
