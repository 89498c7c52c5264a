import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { ChangeCleanup } from './changes/change-cleanup.ts';
import { ChangeNumbering } from './changes/numbering.ts';
import { deleteExpiredKeys } from './idempotency/key-table.ts';
import { Database, type PreparedStatement, type Statements } from './postgres/index.ts';
import type { Settings } from './settings/settings.ts';

/** Pause between two steps, in which PostgreSQL serves other statements. */
const PAUSE_MS = 50;

/** Maximum number of keys that one statement deletes, so that no caller notices it. */
const MAX_KEYS = 1000;

/**
 * Deletes expired rows in small steps: idempotency keys after 24 hours, changes after their retention. Several
 * instances may do so at the same time.
 */
export class Cleanup {
  readonly #selectReadOnly: PreparedStatement<Record<string, never>, { is_read_only: boolean }>;
  readonly #deleteKeys: PreparedStatement<Record<string, never>, unknown>;
  readonly #numbering: ChangeNumbering;
  readonly #changes: ChangeCleanup;

  /** `retention`: the days for which changes are kept. */
  constructor(statements: Statements, retention: number) {
    this.#selectReadOnly = statements.ownSessionRead(
      'SELECT',
      () => sql`select current_setting('transaction_read_only') = 'on' as is_read_only`,
    );
    this.#deleteKeys = statements.ownSessionWrite('DELETE idempotency_keys', () =>
      deleteExpiredKeys(MAX_KEYS),
    );
    this.#numbering = new ChangeNumbering(statements);
    this.#changes = new ChangeCleanup(statements, retention);
  }

  /** Whether PostgreSQL accepts writes. Otherwise a cleanup would fail. */
  async isPossible(): Promise<boolean> {
    const [row] = await this.#selectReadOnly.run({});
    return row?.is_read_only === false;
  }

  async run(signal?: AbortSignal): Promise<void> {
    for await (const _ of this.#steps()) {
      if (signal?.aborted) return;
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => {});
    }
  }

  async *#steps(): AsyncGenerator<void> {
    while ((await this.#deleteKeys.run({})).length === MAX_KEYS) yield;
    // Changes without a position get one first, so that changes are deleted in the order of their positions.
    while (!(await this.#numbering.numberChanges())) yield;
    await this.#numbering.settleSequence();
    yield* this.#changes.deleteExpired();
  }
}

/** Cleans up once, until `signal`, for deployments in which no instance does so by itself. */
export async function maintain(settings: Settings, signal?: AbortSignal): Promise<void> {
  const database = new Database(settings.postgres);
  try {
    await new Cleanup(database.statements, settings.changesRetention).run(signal);
  } finally {
    await database.close(1);
  }
}
