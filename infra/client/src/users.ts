import createClient, { type Client } from 'openapi-fetch';
import { authorize } from './authorize.ts';
import type { TokenSource } from './client-credentials.ts';
import { type Feed, feedOf } from './feed.ts';
import { type List, listOf } from './list.ts';
import { type Operations, operationsOf } from './operations.ts';
import { isAddress, isObject, WrongValue } from './problem.ts';
import { type RetryOptions, sendAgain } from './retries.ts';
import type { paths } from './schema.ts';
import { acceptResponse, refuseWrongValues } from './service-response.ts';

export { foldEmail, isSameEmail } from './list.ts';
export type { BatchResult, NewUser, User } from './operations.ts';

export type UsersOptions = {
  /** The address of the service, with the path that it is mounted under. */
  readonly url: string;
  readonly token: TokenSource;
  readonly retry?: RetryOptions;
  readonly fetch?: typeof fetch;
};

/** The users of a service. A refusal is thrown as a `ProblemError`. */
export type Users = Operations &
  List &
  Feed & {
    /** Every operation of the OpenAPI document, with the same tokens and retries. */
    readonly api: Client<paths>;
  };

/** The users of the service at `url`. Options that cannot work are a `TypeError`. */
export function createUsers({ url, token, retry = {}, fetch: given = fetch }: UsersOptions): Users {
  if (!isAddress(url) || /[?#]/.test(url))
    throw new WrongValue('url must be an http(s) URL without credentials and without a query');
  if (typeof token !== 'function') throw new WrongValue('token must be a function that returns a token');
  if (typeof given !== 'function') throw new WrongValue('fetch must be a function');
  if (!isObject(retry)) throw new WrongValue('retry must be an object');
  const api = createClient<paths>({
    baseUrl: url.replace(/\/+$/, ''),
    fetch: sendAgain(
      authorize((request) => given(request), token),
      retry,
    ),
    redirect: 'manual',
    querySerializer: { array: { style: 'form', explode: false } },
  });
  api.use({ onRequest: refuseWrongValues, onResponse: acceptResponse });
  return { api, ...operationsOf(api), ...listOf(api), ...feedOf(api) };
}
