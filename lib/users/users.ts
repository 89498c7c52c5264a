import type { ServicePrincipal } from '../auth/principal.ts';
import { type Preconditions, preconditionFailed } from '../http/preconditions.ts';
import { createdAndGone } from '../idempotency/refusals.ts';
import type { EventLog } from '../observability/event-log.ts';
import { maskedEmail } from '../observability/redaction.ts';
import type { Statements } from '../postgres/index.ts';
import type { Author } from './change-recording.ts';
import { updatedFields } from './fields.ts';
import { type IdempotentCreates, isUser, keyedValues, type Outcome } from './idempotent-creates.ts';
import { noSuchUser } from './refusals.ts';
import type { TakenValues } from './taken-values.ts';
import type { User, UserCreate, UserUpdate } from './user.ts';
import { newUserId } from './user-id.ts';
import { userStatements, type ValuesToSet } from './user-statements.ts';
import { versionTexts } from './write-preconditions.ts';

/**
 * The users in PostgreSQL. Each method reads or writes by one statement, which decides between racing writers. Further
 * statements only find why nothing was written, or what a key has created.
 */
export class Users {
  readonly #statements: ReturnType<typeof userStatements>;
  readonly #takenValues: TakenValues;
  readonly #idempotentCreates: IdempotentCreates;

  constructor(statements: Statements, takenValues: TakenValues, idempotentCreates: IdempotentCreates) {
    this.#statements = userStatements(statements);
    this.#takenValues = takenValues;
    this.#idempotentCreates = idempotentCreates;
  }

  /** @throws {Problem} not_found_error */
  async get(id: string): Promise<User> {
    const user = await this.#statements.read.run({ key: id });
    if (!user) throw noSuchUser();
    return user;
  }

  /**
   * Stores a user with a new id. With a key, a create is carried out once, however often it is sent.
   *
   * @throws {Problem} conflict_error if the email or the external id is taken; for a known key
   * idempotency_key_reused_error, idempotency_key_in_use_error and gone_error
   */
  async create(user: UserCreate, author: Author, key?: string): Promise<Outcome<User>> {
    const given = { ...user, ...author, id: newUserId() };
    if (key === undefined) {
      const created = await this.#takenValues.writeUnlessTaken(given, () =>
        this.#statements.insert.run(given),
      );
      return { created, isReplay: false };
    }
    const request = { operation: 'createUser', subject: author.actor, key };
    const outcome = await this.#idempotentCreates.carryOutOnce(
      request,
      keyedValues(user),
      async (fingerprint) => {
        const users = await this.#takenValues.writeUnlessTaken(given, () =>
          this.#statements.insertOnce.run({ ...given, ...fingerprint }),
        );
        return users.length > 0 ? users : undefined;
      },
    );
    const [created] = outcome.created;
    if (!isUser(created)) throw createdAndGone();
    return { created, isReplay: outcome.isReplay };
  }

  /**
   * Updates the given fields of a user.
   *
   * @throws {Problem} not_found_error, precondition_failed_error, conflict_error if the email or the external id is taken
   */
  async update(id: string, update: UserUpdate, preconditions: Preconditions, author: Author): Promise<User> {
    const given = { id, ...valuesToSet(update), ...versionTexts(preconditions), ...author };
    const [updated] = await this.#takenValues.writeUnlessTaken(given, async () => [
      await this.#statements.update.run(given),
    ]);
    return updated ?? this.#refuseUntouched(id);
  }

  /** @throws {Problem} not_found_error, precondition_failed_error */
  async delete(id: string, preconditions: Preconditions, author: Author): Promise<void> {
    const deleted = await this.#statements.delete.run({ id, ...versionTexts(preconditions), ...author });
    if (!deleted) await this.#refuseUntouched(id);
  }

  /** Nothing was written: the user does not exist, or has another version than the preconditions allow. */
  async #refuseUntouched(id: string): Promise<never> {
    await this.get(id);
    throw preconditionFailed();
  }
}

/** The fields that an update sets. Null clears a field, or leaves it unchanged, as the table says. */
function valuesToSet(update: UserUpdate): ValuesToSet {
  const values: Record<string, unknown> = {};
  let sets = 0;
  for (const { name, changeBit, nullOnUpdate } of updatedFields) {
    const value = update[name];
    values[name] = value ?? null;
    if (value !== undefined && (value !== null || nullOnUpdate === 'clears')) sets |= changeBit;
  }
  return { ...values, sets } as ValuesToSet;
}

export function logCreated(log: EventLog, { id, email }: User, { subject }: ServicePrincipal): void {
  log.info('user_created', { user_id: id, email: maskedEmail(email), subject });
}
