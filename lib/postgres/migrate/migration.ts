import type { RawBuilder } from 'kysely';
import type { Engine } from '../engines.ts';

/** Sends one statement, and resolves with its rows. */
export type SendSql = <Row>(statement: RawBuilder<Row>) => Promise<readonly Row[]>;

/**
 * One statement or a few, outside of a transaction. Each statement leaves existing objects unchanged, because it may be
 * sent again after any failure, and suits the version of the service that still runs at the same time.
 */
export type Migration = (send: SendSql, engine: Engine) => Promise<void>;
