/**
 * Settings of PostgreSQL that protect the service, and what happens without them. An instance sets them in its sessions.
 * Behind a pooler and with a distributed engine it cannot, and the role should have them. The pages for operators are
 * generated from this table.
 */
export const ROLE_SETTINGS: Readonly<Record<string, { readonly value: string; readonly without: string }>> = {
  statement_timeout: {
    value: '4s',
    without: 'statements that were given up run on (event `statement_timeout_missing`)',
  },
  client_connection_check_interval: {
    value: '500ms',
    without: 'statements whose connection the pooler closed run on',
  },
  idle_in_transaction_session_timeout: {
    value: '10s',
    without: 'a connection that is lost within a statement keeps its locks',
  },
  default_transaction_isolation: {
    value: 'read committed',
    without: 'a stricter default causes conflicts, which are retried',
  },
  row_security: {
    value: 'off',
    without: 'a policy hides users, instead of refusing the statement (42501). `/ready` is 503 in both cases',
  },
};

/** Whether a session whose setting has this value lacks what the role should have. Any limit of time is one. */
export function isMissing(name: string, current: string): boolean {
  const { value } = ROLE_SETTINGS[name] ?? {};
  return /^\d/.test(value ?? '') ? current === '0' : current !== value;
}
