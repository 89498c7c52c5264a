import type { ServicePrincipal } from '../auth/principal.ts';
import type { EventLog } from '../observability/event-log.ts';
import { maskedEmail } from '../observability/redaction.ts';
import type { User } from './user.ts';

/** Tells of a user who was created just now; a replay has created nobody. */
export function logCreated(log: EventLog, { id, email }: User, { subject }: ServicePrincipal): void {
  log.info('user_created', { user_id: id, email: maskedEmail(email), subject });
}
