import type { ServicePrincipal } from '../auth/principal.ts';
import type { EventLog } from '../observability/event-log.ts';
import { maskedEmail } from '../observability/redaction.ts';
import type { User } from './user.ts';

/** Logs that a user was created. A replay has created no user. */
export function logCreated(log: EventLog, { id, email }: User, { subject }: ServicePrincipal): void {
  log.info('user_created', { user_id: id, email: maskedEmail(email), subject });
}
