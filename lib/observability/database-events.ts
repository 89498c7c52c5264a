import { AsyncResource } from 'node:async_hooks';
import type { PostgresServer } from '../settings/settings.ts';
import type { EventFields, EventLog } from './event-log.ts';
import { redactedCause, redactedReason } from './redaction.ts';

/** Minimum time between two lines about causes of one outage, or of an event that may occur often, in milliseconds. */
const PERIOD_MS = 1000;

/** The events of the engine in the log: infra/docs/operate.md lists them. Without a log, they are not reported. */
export class DatabaseEvents {
  readonly #write: (level: 'info' | 'warning' | 'error', ...event: Parameters<EventLog['info']>) => void;
  /** Number of occurrences that are not logged yet, for each key whose last line is recent. */
  readonly #unlogged = new Map<string, number>();
  #outage: { readonly since: number; readonly loggedAt: number; readonly reason: string } | undefined;
  #inUse: { readonly host?: string; readonly acceptsWrites: boolean } = { acceptsWrites: true };

  constructor(log?: EventLog) {
    // A line belongs to no request.
    this.#write = AsyncResource.bind((level, ...event) => log?.[level](...event));
  }

  onUnavailable(hosts: readonly PostgresServer[], fault: unknown): void {
    const now = performance.now();
    const { since = now, loggedAt = Number.NEGATIVE_INFINITY, reason } = this.#outage ?? {};
    const current = redactedReason(fault);
    if (current === reason || now - loggedAt < PERIOD_MS) return;
    this.#outage = { since, loggedAt: now, reason: current };
    const cause = { ...redactedCause(fault), stack: undefined };
    this.#write('error', 'postgres_unavailable', { hosts: hosts.map(addressOf), cause });
  }

  onSession(): void {
    if (!this.#outage) return;
    const duration_ms = Math.round(performance.now() - this.#outage.since);
    this.#outage = undefined;
    this.#write('info', 'postgres_available', { duration_ms });
  }

  onSessionRefused(host: PostgresServer, fault: unknown): void {
    this.#writeCounted('postgres_sessions_refused', { host: addressOf(host), reason: redactedReason(fault) });
  }

  /** The instance closed a session for a reason, or a session ended during a statement. */
  onSessionClosed(host: PostgresServer, fault: unknown): void {
    const reason = redactedReason(fault);
    this.#writeCounted('postgres_session_closed', { host: addressOf(host), reason }, reason);
  }

  /** This host is used. `fault` is why the one before is not. */
  onHostUsed(host: PostgresServer, acceptsWrites: boolean, fault?: unknown): void {
    const to = addressOf(host);
    const { host: from = to, acceptsWrites: accepted } = this.#inUse;
    this.#inUse = { host: to, acceptsWrites };
    if (from === to && acceptsWrites === accepted) return;
    const reason = fault ? redactedReason(fault) : `it accepts ${acceptsWrites ? '' : 'no '}writes`;
    this.#write('warning', 'postgres_host_changed', { from, to, accepts_writes: acceptsWrites, reason });
  }

  /** The role lacks these settings. Without `statement_timeout`, PostgreSQL does not end the statements that are given up. */
  onRoleChecked(missing: readonly string[]): void {
    const settings = missing.filter((name) => name !== 'statement_timeout');
    if (settings.length < missing.length) this.#write('warning', 'statement_timeout_missing');
    if (settings.length > 0) this.#write('warning', 'role_settings_missing', { settings });
  }

  /** Logs an event that may occur often: once a second at most for each cause, with the `count` since its last line. */
  #writeCounted(event: string, fields: EventFields, cause = '', count = 1): void {
    const key = `${event} ${cause}`;
    const unlogged = this.#unlogged.get(key);
    if (unlogged !== undefined) {
      this.#unlogged.set(key, unlogged + 1);
      return;
    }
    this.#write('warning', event, { ...fields, count });
    this.#unlogged.set(key, 0);
    const onPeriodEnd = () => {
      const later = this.#unlogged.get(key) ?? 0;
      this.#unlogged.delete(key);
      if (later > 0) this.#writeCounted(event, fields, cause, later);
    };
    setTimeout(onPeriodEnd, PERIOD_MS).unref();
  }
}

function addressOf({ host, port }: PostgresServer): string {
  return `${host}:${port}`;
}
