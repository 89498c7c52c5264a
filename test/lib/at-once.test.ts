import middy from '@middy/core';
import { describe, expect, test } from 'vitest';
import { atOnce } from '../../lib/http/at-once.ts';
import type { Middleware } from '../../lib/http/middleware/middleware.ts';

const EVENT = {
  rawPath: '/',
  rawQueryString: '',
  headers: {},
  requestContext: { http: { method: 'GET' } },
  isBase64Encoded: false,
};

type Step = 'at once' | 'later' | 'throws' | 'rejects';

const steps: Readonly<Record<Step, () => void | Promise<void>>> = {
  'at once': () => {},
  later: () => new Promise((resolve) => setImmediate(resolve)),
  throws() {
    throw new Error('thrown');
  },
  rejects: async () => {
    throw new Error('rejected');
  },
};

/** What a stack of three middlewares does, step by step, and its answer or what it rejects with. */
async function runOf(modes: readonly Step[], answer: Step, options: object, context: object) {
  const done: string[] = [];
  const stack = middy(
    (async () => {
      done.push('answer');
      await steps[answer]();
      return { statusCode: 200, headers: {}, body: 'done' };
    }) as never,
    options,
  );
  for (const [index, mode] of modes.entries()) {
    stack.use({
      before() {
        done.push(`before ${index}`);
        return steps[mode]();
      },
      after: ({ response }) => void done.push(`after ${index} of ${response.body}`),
      onError: ({ error, response }) =>
        void done.push(`error ${index}: ${(error as Error).message}, ${JSON.stringify(response)}`),
    } satisfies Middleware as never);
  }
  stack.onError((request) => {
    request.response = { statusCode: 500, headers: {}, body: String((request.error as Error).message) };
  });
  const run = stack as unknown as (event: object, context: object) => Promise<unknown>;
  return { answer: await run(EVENT, context), done };
}

describe('a stack that runs at once does what middy does, in the same order', () => {
  const modes = Object.keys(steps) as Step[];

  test.each(modes.flatMap((second) => modes.map((answer) => [second, answer] as const)))(
    'a check that is done %s, an answer that comes %s',
    async (second, answer) => {
      const stack = ['at once', second, 'later'] as const;
      const byMiddy = await runOf(stack, answer, {}, {});

      expect(await runOf(stack, answer, { executionMode: atOnce }, {})).toEqual(byMiddy);
      const context = { getRemainingTimeInMillis: () => 5000 };
      expect(await runOf(stack, answer, { executionMode: atOnce }, context)).toEqual(byMiddy);
    },
  );
});
