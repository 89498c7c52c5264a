/** Which requests an instance serves, and when, while it is overloaded: see README.md. */
export { type Admission, Admissions } from './admission.ts';
export { createRefusal } from './refusals.ts';
export type { QueuedRequest } from './turns.ts';
