/** Which requests an instance serves, and when, while it is overloaded: see README.md. */
export { type Admission, Admissions, type QueuedRequest } from './admission.ts';
export { OverloadResponse } from './refusals.ts';
