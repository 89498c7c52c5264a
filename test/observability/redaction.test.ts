import { describe, expect, test } from 'vitest';
import {
  redactedCause,
  redactedMessage,
  redactedPath,
  redactedText,
} from '../../lib/observability/redaction.ts';
import { fc } from '../stage/fast-check.ts';

const base64url = (text: string) => Buffer.from(text).toString('base64url');

const token = fc
  .tuple(
    fc.constantFrom(
      '{"alg":"RS256"}',
      '{"alg":"ES256","typ":"at+jwt"}',
      '{ "alg": "RS256" }',
      '{\n"alg":"RS256"}',
    ),
    fc.record({ sub: fc.string(), exp: fc.nat() }),
    // The indentation of the claims.
    fc.constantFrom(0, 2),
    fc.uint8Array({ maxLength: 64 }),
  )
  .map(([header, claims, indentation, signature]) =>
    [
      base64url(header),
      base64url(JSON.stringify(claims, undefined, indentation)),
      Buffer.from(signature).toString('base64url'),
    ].join('.'),
  );

const address = fc
  .tuple(
    fc.stringMatching(/^[!#-'*+\-.0-9=?A-Z^-~]{1,20}$/),
    fc.constantFrom('@', '\uff20', '\ufe6b'),
    fc.stringMatching(/^[a-z\d-]{1,20}(\.[a-z]{2,5})?$/),
  )
  .map((parts) => parts.join(''));

const secret = fc.oneof(token, address);

const around = fc.constantFrom('', ...'();"<>~x%=é', '%4', 'access_token=', 'mailto:');

/**
 * How often each character is percent-encoded, in turn. A character that is not allowed in a path is encoded at least
 * once.
 */
const encodings = fc.infiniteStream(fc.integer({ min: 0, max: 3 }));

function encoded(text: string, times: Iterable<number>): string {
  const levels = times[Symbol.iterator]();
  return [...text]
    .map((character) => {
      const least = /[\w\-.~!$&'()*+,;=:@%]/.test(character) ? 0 : 1;
      let part = character;
      for (let level = Math.max(levels.next().value ?? 0, least); level > 0; level -= 1) {
        part = [...Buffer.from(part)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
      }
      return part;
    })
    .join('');
}

test('a segment of a path and a word of a User-Agent are masked if they contain a token or an email, beside any text and in any encoding', () => {
  fc.assert(
    fc.property(secret, around, around, encodings, (hidden, before, after, times) => {
      const part = encoded(before + hidden + after, times);

      expect(redactedPath(`/api/v1/users/${part}/orders`)).toBe('/api/v1/users/***/orders');
      expect(redactedText(`Mozilla/5.0 (X11; ${part} bot/1.2`)).toBe('Mozilla/5.0 (X11; *** bot/1.2');
    }),
    { numRuns: 2000 },
  );
});

describe('redactedPath', () => {
  test.each([
    '/api/v1/users/ada%25252540example.com',
    '/api/v1/users/ada%%34%30example.com',
    '/api/v1/users/ada%EF%BC%A0example.com',
    '/api/v1/users/eyJhbGciOiJSUzI1NiJ9%2EeyJzdWIiOiJhZGEifQ%2Ec2lnbmF0dXJl',
    '/api/v1/users/eyJhbGciOiJSUzI1NiJ9',
  ])('of %s the segment is masked', (path) => {
    expect(redactedPath(path)).toBe('/api/v1/users/***');
  });

  test('masks a path of more than 2048 characters with an email completely', () => {
    const orders = '/orders'.repeat(300);

    expect(redactedPath(orders)).toBe(orders);
    expect(redactedPath(`${orders}/ada%40example.com`)).toBe('***');
  });

  test('does not change any other path', () => {
    const segment = fc.oneof(fc.uuid(), fc.stringMatching(/^[\w~!$'()*+,;=:-]{0,30}(\.\w{1,9})?$/));
    const plain = fc
      .array(segment.filter((text) => !text.includes('eyJ')))
      .map((parts) => `/${parts.join('/')}`);
    fc.assert(
      fc.property(plain, (path) => {
        expect(redactedPath(path)).toBe(path);
      }),
    );

    for (const path of ['/', '/api/%ff', '/a%20b', '/%E2%82%AC', '/%', '/%2', '/%zz/x.y.z', '/v1.2/x']) {
      expect(redactedPath(path)).toBe(path);
    }
  });
});

describe('redactedText', () => {
  test('masks UTF-8 that Node read as Latin-1', () => {
    const sent = Buffer.from('billing/1.0 ada\uff20example.com').toString('latin1');

    expect(redactedText(sent)).toBe('billing/1.0 ***');
  });

  test('does not change the names of browsers and clients', () => {
    for (const agent of [
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
      'curl/8.14.1',
      'node',
      'Amazon CloudFront',
      'kube-probe/1.33',
    ]) {
      expect(redactedText(agent)).toBe(agent);
    }
  });
});

describe('redactedMessage', () => {
  test('masks the words that contain a token or an email', () => {
    fc.assert(
      fc.property(
        secret.filter((text) => AS_IN_MESSAGES.test(text)),
        (hidden) => {
          expect(redactedMessage(`invalid value "${hidden}": refused`)).toBe('invalid value *** refused');
        },
      ),
    );
  });

  test.each([
    'getaddrinfo ENOTFOUND user-database.user-management.svc.cluster.local',
    'getaddrinfo ENOTFOUND service-users.c9akciq32rgy.eu-central-1.rds.amazonaws.com',
    "Cannot find package '@middy/core' imported from /app/node_modules/@middy/util/index.js",
    'column "email" of relation "users" does not exist',
    'connect ECONNREFUSED 127.0.0.1:5432',
  ])('does not change %s', (message) => {
    expect(redactedMessage(message)).toBe(message);
  });
});

/** Tokens whose header or claims begin without white space. Others are masked only in paths and headers. */
const AS_IN_MESSAGES = /@|\uff20|\ufe6b|eyJ[\w-]{8}/;

describe('redactedCause', () => {
  test('masks message and stack, also of inner causes, and keeps the frames', () => {
    const inner = new Error('no mail to ada@example.com');
    const cause = redactedCause(new TypeError('token eyJhbGciOiJSUzI1NiJ9 refused', { cause: inner }));

    expect(cause).toEqual({
      name: 'TypeError',
      message: 'token *** refused',
      stack: expect.stringMatching(/^TypeError: token \*\*\* refused\n +at .*redaction\.test\.ts/),
      cause: {
        name: 'Error',
        message: 'no mail to ***',
        stack: expect.stringMatching(/^Error: no mail to \*\*\*\n +at .*redaction\.test\.ts/),
      },
    });
  });

  test('has the masked messages of all errors of an aggregate without a message', () => {
    const errors = [new Error('connect ECONNREFUSED ::1:5432'), new Error('no mail to ada@example.com')];

    expect(redactedCause(new AggregateError(errors))).toEqual({
      name: 'AggregateError',
      message: 'connect ECONNREFUSED ::1:5432; no mail to ***',
      stack: expect.stringMatching(
        /^connect ECONNREFUSED ::1:5432; no mail to \*\*\*\n +at .*redaction\.test\.ts/,
      ),
    });
  });

  test.each(['22P02', '23514', 'P0001'])('has no message of PostgreSQL for %s', (code) => {
    const error = Object.assign(new Error('Ada Lovelace\n    at Marylebone'), {
      code,
      name: 'error',
      detail: 'Ada',
    });

    const cause = redactedCause(error);
    expect(cause).toMatchObject({ name: 'error', code, message: 'a value was refused' });
    expect(cause?.stack).toMatch(/^error: a value was refused\n +at .*redaction\.test\.ts/);
    expect(JSON.stringify(cause)).not.toMatch(/Ada|Marylebone/);
  });

  test('has no message that has changed since the stack was captured', () => {
    const error = new Error('of ada@example.com');
    expect(error.stack).toContain('ada@example.com');
    error.message = 'of somebody';

    expect(redactedCause(error)?.stack).toMatch(/^of somebody\n +at .*redaction\.test\.ts/);
  });
});

// With quadratic costs these would not end in time.
test.each([
  ['one run', 'x'],
  ['runs of a token', 'xxxxxxxxxx.'],
  ['short runs', 'x.'],
  ['beginnings of JSON', 'eyJ'],
  ['signs of an address', 'a@'],
  ['escapes', '%41'],
  ['escapes of escapes', '%25'],
  ['half escapes', '%2'],
  ['segments', '/%40'],
  ['words', ' @'],
  ['scopes of packages', '@x/'],
])('a megabyte of %s takes proportionally long at most', (_what, part) => {
  const text = part.repeat(1_000_000 / part.length);

  for (const redacted of [redactedPath(text), redactedText(text), redactedMessage(text)]) {
    expect(redacted.length).toBeLessThanOrEqual(2 * text.length);
  }
});
