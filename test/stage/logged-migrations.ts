import { migrate } from '../../lib/migrations/runner.ts';
import { until } from './until.ts';

type Given = Parameters<typeof migrate>;

/** Runs migrations, and keeps what their log says about waits. */
export function migrateLogged(settings: Given[0], known: Given[1]) {
  const waits: Record<string, unknown>[] = [];
  const log = (event: string, fields: Record<string, unknown> = {}) =>
    void (event === 'migration_waiting' && waits.push(fields));
  return {
    waits,
    ended: migrate(settings, known, undefined, { debug: log, info: log, warning: log, error: log }),
    untilLogged: () => until('it is logged', () => waits.length > 0, { seconds: 20 }),
  };
}
