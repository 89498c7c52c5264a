import { type Context, createContextKey, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { expect, test } from 'vitest';
import { currentRequest, withinRequest } from '../http/request-scope.ts';
import { requestContexts } from './request-contexts.ts';

const contexts = requestContexts();
const KEY = createContextKey('tenant');

/** Runs as a request with the header `tenant` and a span with this id. */
function asRequest<Result>(spanId: string, tenant: string, serve: () => Result): Result {
  return withinRequest({ requestId: spanId, answeredBy: Number.POSITIVE_INFINITY }, () => {
    const request = currentRequest();
    const span = trace.wrapSpanContext({ traceId: 'f'.repeat(32), spanId, traceFlags: 0 });
    if (request) request.traced = { span, caller: ROOT_CONTEXT.setValue(KEY, tenant) };
    return serve();
  });
}

const seen = (context: Context) => [trace.getSpan(context)?.spanContext().spanId, context.getValue(KEY)];
const [FIRST, SECOND] = ['1'.repeat(16), '2'.repeat(16)];

test('outside of requests the context is empty', () => {
  expect(contexts.active()).toBe(ROOT_CONTEXT);
});

test("within a request it has the request's span and its headers, also after waiting", async () => {
  const both = [FIRST, SECOND].map((id) =>
    asRequest(id, `of ${id}`, async () => {
      await new Promise(setImmediate);
      return seen(contexts.active());
    }),
  );

  expect(await Promise.all(both)).toEqual([
    [FIRST, `of ${FIRST}`],
    [SECOND, `of ${SECOND}`],
  ]);
  expect(contexts.active()).toBe(ROOT_CONTEXT);
});

test('an entered context replaces that of the request until it is left', async () => {
  const entered = ROOT_CONTEXT.setValue(KEY, 'entered');
  await asRequest(FIRST, 'sent', async () => {
    await contexts.with(entered, async () => {
      await new Promise(setImmediate);
      expect(contexts.active()).toBe(entered);
    });
    expect(seen(contexts.active())).toEqual([FIRST, 'sent']);
  });
});

test('a request that is served within a context has a context of its own', () => {
  const outer = ROOT_CONTEXT.setValue(KEY, 'outer');

  contexts.with(outer, () => {
    expect(asRequest(FIRST, 'sent', () => seen(contexts.active()))).toEqual([FIRST, 'sent']);
    expect(contexts.active()).toBe(outer);
  });
});

test('a function runs in the context to which it is bound, with its arguments', () => {
  const entered = ROOT_CONTEXT.setValue(KEY, 'bound');
  const bound = contexts.bind(entered, (given: string) => [given, contexts.active().getValue(KEY)]);

  expect(asRequest(FIRST, 'sent', () => bound('given'))).toEqual(['given', 'bound']);
});

test('a function that is run in a context keeps its receiver and its result', () => {
  const receiver = { name: 'receiver' };
  function named(this: typeof receiver, given: string): string {
    return `${this.name} ${given}`;
  }

  expect(contexts.with(ROOT_CONTEXT, named, receiver, 'given')).toBe('receiver given');
});
