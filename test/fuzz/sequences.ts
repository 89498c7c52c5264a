import fc, { type Arbitrary } from 'fast-check';
import { expect } from 'vitest';
import { updatedFields } from '../../lib/users/fields.ts';
import type { HttpResponse } from '../stage/raw-request.ts';
import { fieldOf, jsonOf } from './conformance.ts';
import { type Operation, operationOf, operations } from './document.ts';
import { type Fuzzed, requestTo } from './requests.ts';

/** A request, and the operation that it is for. */
type Step = { readonly operation: Operation; readonly request: Fuzzed };

/** A request that creates a resource, and requests along the links of its response. */
export type Sequence = { readonly create: Step; readonly follow: readonly Step[] };

/** Sends a request, and holds the response against the document. */
type Ask = (operation: Operation, request: Fuzzed) => Promise<HttpResponse>;

type Linking = { readonly operation: Operation; readonly status: number };

/** The responses that have links. */
const linking: readonly Linking[] = operations.flatMap((operation) =>
  Object.entries(operation.responses).flatMap(([status, { links }]) =>
    links ? [{ operation, status: Number(status) }] : [],
  ),
);

const linksOf = ({ operation, status }: Linking) => Object.values(operation.responses[status]?.links ?? {});

/** Sequences from each response that has links. Parameters stand as their runtime expressions, in braces. */
export const sequences: readonly (readonly [title: string, sequence: Arbitrary<Sequence>])[] = linking.map(
  (one) => {
    const { operation, status } = one;
    const steps = linksOf(one).map(({ operationId, parameters }) => {
      const inBraces = Object.entries(parameters).map(([name, expression]) => [name, `{${expression}}`]);
      const target = operationOf(operationId);
      const any = requestTo(target, Object.fromEntries(inBraces));
      // A request with a value that is not allowed changes nothing, so that most have none.
      const allowed = any.filter(({ claim }) => claim === 'inside');
      return fc
        .oneof({ weight: 3, arbitrary: allowed }, { weight: 1, arbitrary: any })
        .map((request) => ({ operation: target, request }));
    });
    const create = requestTo(operation)
      .filter(({ claim }) => claim === 'inside')
      .map((request) => ({ operation, request }));
    const follow = fc.array(fc.oneof(...steps), { minLength: 1, maxLength: 8 });
    return [`${operation.operationId} ${status}`, fc.record({ create, follow })];
  },
);

/**
 * Carries out a sequence. What was created is there, a read returns what was written last, a refused request changes
 * nothing, and what was deleted is 404. Each write is one change.
 */
export async function runSequence({ create, follow }: Sequence, ask: Ask): Promise<void> {
  const created = await ask(create.operation, create.request);
  // A value may be taken by an earlier sequence.
  if (created.status !== 201) return;
  expect(jsonOf(created)).toMatchObject(writtenValues(JSON.parse(create.request.body.toString())));
  const resource = new LinkedResource(created, ask);
  await resource.check();
  for (const step of follow) await resource.take(step);
  await resource.check();
  await resource.checkChanges();
}

/** What is known of a created resource. */
class LinkedResource {
  readonly #location: string;
  readonly #ask: Ask;
  #value: object;
  #tag: string;
  #isDeleted = false;

  constructor(created: HttpResponse, ask: Ask) {
    this.#location = fieldOf(created, 'location') ?? '';
    this.#ask = ask;
    this.#value = jsonOf(created) as object;
    this.#tag = fieldOf(created, 'etag') ?? '';
  }

  /** Sends a request along a link, and compares the response with what is known. */
  async take({ operation, request }: Step): Promise<void> {
    const target = request.target.replace(/\{\$response\.body#(.+?)\}/g, (_, pointer: string) =>
      String(valueAt(this.#value, pointer)),
    );
    const response = await this.#ask(operation, { ...request, target });
    const isOfResource = target.split('?')[0] === this.#location;
    if (!isOfResource || request.claim !== 'inside') return;
    if (this.#isDeleted) expect(response.status).toBe(404);
    else this.#remember(request, response);
  }

  #remember({ method, body }: Fuzzed, response: HttpResponse): void {
    const { status } = response;
    expect([404, 410]).not.toContain(status);
    if (status >= 300) return;
    if (method === 'DELETE') this.#isDeleted = true;
    if (method === 'GET') expect(this.#asKnown(response)).toEqual([this.#value, this.#tag]);
    if (method !== 'PATCH') return;
    const before = this.#value as { updated_at: string };
    const after = jsonOf(response) as typeof before;
    expect(after).toMatchObject(writtenValues(JSON.parse(body.toString())));
    expect(after.updated_at > before.updated_at).toBe(true);
    expect(versionOf(fieldOf(response, 'etag'))).toBe(versionOf(this.#tag) + 1);
    [this.#value, this.#tag] = [after, fieldOf(response, 'etag') ?? ''];
  }

  /** Reads the resource at its location. */
  async check(): Promise<void> {
    const response = await this.#ask(operationOf('getUser'), read(this.#location));
    if (this.#isDeleted) expect(response.status).toBe(404);
    else expect([response.status, ...this.#asKnown(response)]).toEqual([200, this.#value, this.#tag]);
  }

  /** Reads the changes: one for each version, and one for the deletion. */
  async checkChanges(): Promise<void> {
    const response = await this.#ask(operationOf('listUserChanges'), read(`${this.#location}/changes`));
    const types = (jsonOf(response) as { type: string }[]).map(({ type }) => type);
    const updates = Array(versionOf(this.#tag) - 1).fill('user.updated');
    expect(types).toEqual(['user.created', ...updates, ...(this.#isDeleted ? ['user.deleted'] : [])]);
  }

  #asKnown(response: HttpResponse) {
    return [jsonOf(response), fieldOf(response, 'etag')];
  }
}

const read = (target: string): Fuzzed => ({
  method: 'GET',
  target,
  fields: [['Authorization', 'Bearer {token}']],
  body: Buffer.alloc(0),
  claim: 'inside',
});

const versionOf = (tag: string | undefined) => Number(/^"(\d+)"$/.exec(tag ?? '')?.[1]);

/** The value to which a JSON pointer leads, RFC 6901. */
function valueAt(value: unknown, pointer: string): unknown {
  const names = pointer.split('/').slice(1);
  return names.reduce((at, name) => (at as Record<string, unknown>)[name], value);
}

/** The members of a create or an update whose values the response must have. Null leaves or clears a field; unknown members are ignored. */
function writtenValues(sent: object): object {
  return Object.fromEntries(
    Object.entries(sent).filter(
      ([name, value]) => value !== null && updatedFields.some((field) => field.name === name),
    ),
  );
}
