import type { Settings } from '../../settings.ts';
import { engineOf } from '../engines.ts';
import { isOfPostgres } from '../faults.ts';
import { Client } from './client.ts';
import { abandon, clientConfig } from './connection.ts';

/** In milliseconds. */
const PAUSE = 2000;
const TIME_LIMIT = 1000;

/** An answer may be on its way while PostgreSQL runs the statement no more: once is no proof. */
const PROOF = 2;

/**
 * Waits for the answer to a statement that may take long. Asks PostgreSQL meanwhile, by another connection, whether it
 * still runs it; when it does not, or is out of reach, the answer is lost and `giveUp` is called.
 *
 * @param giveUp makes `answer` reject
 */
export async function whileItRuns<Answer>(
  postgres: Settings['postgres'],
  statement: string,
  answer: Promise<Answer>,
  giveUp: () => void,
): Promise<Answer> {
  let isAnswered = false;
  let isLost = false;
  let timer = setTimeout(look, PAUSE, 0);

  async function look(misses: number): Promise<void> {
    const missed = (await isRunning(postgres, statement)) ? 0 : misses + 1;
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

async function isRunning(postgres: Settings['postgres'], statement: string): Promise<boolean> {
  const client = new Client(clientConfig(postgres, TIME_LIMIT / 1000));
  const limit = setTimeout(() => abandon(client), TIME_LIMIT);
  let isInReach = false;
  try {
    await client.connect();
    isInReach = true;
    if (!engineOf(postgres).showsSessions) return true;
    const { rowCount } = await client.query(
      `select from pg_stat_activity
       where datname = current_database() and state = 'active' and left(query, 200) = left($1, 200)`,
      [statement],
    );
    return rowCount !== 0;
  } catch (fault) {
    // PostgreSQL, or a pooler, is there, though it has nothing left for the question.
    return isInReach || isOfPostgres(fault);
  } finally {
    clearTimeout(limit);
    abandon(client);
  }
}
