export { type ClientCredentials, clientCredentials, type TokenSource } from './client-credentials.ts';
export type { Change, ChangePage } from './feed.ts';
export { type Mirror, mirror } from './mirror.ts';
export { isProblem, type Problem, type ProblemCode, ProblemError, UnexpectedAnswer } from './problem.ts';
export type { RetryOptions } from './retries.ts';
export type { components, paths } from './schema.ts';
export {
  type BatchResult,
  createUsers,
  type NewUser,
  type User,
  type UserChange,
  type UserFilter,
  type Users,
  type UsersOptions,
  type VersionedUser,
} from './users.ts';
