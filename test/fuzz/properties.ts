import type { IAsyncProperty } from 'fast-check';
import { expect } from 'vitest';
import { fieldOf, lint } from '../http/rules/rules.ts';
import { fc } from '../stage/fast-check.ts';
import type { HttpResponse, RawRequest } from '../stage/raw-request.ts';
import { holdAgainst, holdAgainstClaim } from './conformance.ts';
import { methodsByPath, type Operation } from './document.ts';
import { type Fuzzed, requestTo } from './requests.ts';

type FuzzTarget = {
  send(request: RawRequest): Promise<HttpResponse>;
  createUser(): Promise<{ readonly id: string }>;
  /** `token` has both roles, `roleless` none that any operation requires. */
  readonly token: string;
  readonly roleless: string;
};

export type Properties = ReturnType<typeof propertiesOf>;

/** The properties of a service that `infra/openapi.json` describes. */
export function propertiesOf({ send, createUser, token, roleless }: FuzzTarget) {
  /** Sends a request to an operation, and holds the response against the document. */
  async function ask(operation: Operation, fuzzed: Fuzzed): Promise<HttpResponse> {
    const request = await fill(fuzzed);
    const response = await send(request);
    holdAgainst(operation, request, response);
    holdAgainstClaim(request, response);
    return response;
  }

  /** The request with a stored user and with tokens in place of their names. */
  async function fill({ target, fields, ...rest }: Fuzzed): Promise<Fuzzed> {
    const id = target.includes('{known}') ? (await createUser()).id : '';
    const withTokens = (value: string) => value.replace('{token}', token).replace('{roleless}', roleless);
    return {
      ...rest,
      target: target.replace('{known}', id),
      fields: fields.map(([name, value]) => [name, withTokens(value)]),
    };
  }

  return {
    /** Any request to the operation has a documented response. A link to a next page leads to a page. */
    ofOperation: (
      operation: Operation,
      onStatus: (status: number) => void = () => {},
    ): IAsyncProperty<[Fuzzed]> =>
      fc.asyncProperty(requestTo(operation), async (fuzzed) => {
        const response = await ask(operation, fuzzed);
        onStatus(response.status);
        const [, next] = /^<(.+)>; rel="next"$/.exec(fieldOf(response, 'link') ?? '') ?? [];
        if (next === undefined) return;
        const following = await ask(operation, { ...fuzzed, target: next });
        expect(following.status).toBe(200);
      }),

    /** A method without an operation is 405, and OPTIONS is 204, both with the documented methods in `Allow`. */
    ofOtherMethods: () =>
      fc.asyncProperty(requestsWithoutOperation, async ({ path, method, id, suffix }) => {
        const target = `${path.replace(/\{\w+\}/, id)}${suffix}`;
        const request = { method, target, fields: [], body: Buffer.alloc(0) };
        const response = await send(request);
        expect(response.status).toBe(method === 'OPTIONS' ? 204 : 405);
        const allowed = fieldOf(response, 'allow')?.split(', ');
        expect(new Set(allowed)).toEqual(methodsByPath.get(path));
        expect(lint({ request, response })).toEqual([]);
      }),
  };
}

/** Methods that some path lacks. No operation has the last two. */
const METHODS = ['OPTIONS', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PURGE'];

const requestsWithoutOperation = fc
  .record({
    path: fc.constantFrom(...methodsByPath.keys()),
    method: fc.constantFrom(...METHODS),
    id: fc.oneof(fc.uuid(), fc.constantFrom('-', '%20', 'batches')),
    suffix: fc.constantFrom('', '?x=1'),
  })
  .filter(({ path, method }) => method === 'OPTIONS' || !methodsByPath.get(path)?.has(method));
