import type { Settings } from '../settings.ts';

/** Whether changes are recorded and served at all. */
export function keepsChanges({ changesRetention }: Pick<Settings, 'changesRetention'>): boolean {
  return changesRetention > 0;
}
