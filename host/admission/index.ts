/** Which requests an instance serves, and when, while it is overloaded: see README.md. */
export type { Admission } from './admission.ts';
export { Admissions } from './admissions.ts';
export { createRefusal } from './refusals.ts';
export type { QueuedRequest } from './turns.ts';
