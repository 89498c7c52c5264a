export { type ClientCredentials, clientCredentials, type TokenSource } from './client-credentials.ts';
export type { Change, ChangePage } from './feed.ts';
export type { UserFilter } from './list.ts';
export { type Mirror, mirror } from './mirror.ts';
export type { BatchResult, NewUser, User, UserChange, VersionedUser } from './operations.ts';
export { isProblem, type Problem, type ProblemCode, ProblemError, UnexpectedAnswer } from './problem.ts';
export type { RetryOptions } from './retries.ts';
export type { components, paths } from './schema.ts';
export { createUsers, type Users, type UsersOptions } from './users.ts';
