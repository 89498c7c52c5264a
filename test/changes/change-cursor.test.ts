import { describe, expect, test } from 'vitest';
import { changeCursor, parseChangeCursor } from '../../lib/changes/change-cursor.ts';

const USER = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';
const PLAIN = USER.replaceAll('-', '');

const encode = (text: string) => Buffer.from(text).toString('base64url');

const places = [
  { position: 0, identity: '00000000', userId: undefined },
  { position: 4711, identity: '9f86d081', userId: undefined },
  { position: Number.MAX_SAFE_INTEGER, identity: '9f86d081', userId: USER },
];

test.each(places)('the cursor of %j encodes this place', (place) => {
  expect(parseChangeCursor(changeCursor(place))).toEqual(place);
});

test.each(places)('a truncated cursor of %j is not a cursor', (place) => {
  const cursor = changeCursor(place);
  for (let length = 1; length < cursor.length; length += 1)
    expect([cursor.slice(0, -length), cursor.slice(length)].map(parseChangeCursor)).toEqual([
      undefined,
      undefined,
    ]);
});

test.each([
  ['.0', { position: 0, userId: undefined }],
  ['.16', { position: 16, userId: undefined }],
  [`${PLAIN}.9007199254740991`, { position: Number.MAX_SAFE_INTEGER, userId: USER }],
])('a cursor of earlier versions encodes its place: %s', (text, place) => {
  expect(parseChangeCursor(encode(text))).toEqual({ ...place, identity: undefined });
});

describe('a cursor must not be', () => {
  test.each([
    ...['', '.', '16', '.016', '.-16', '.+16', '.1e3', '.16 ', ' .16', '.16\n', '.9007199254740992'],
    ...['.99999999999999999999', `${PLAIN.toUpperCase()}.16`, `${USER}.16`, `${PLAIN.slice(1)}.16`],
    ...['9f86d081..16', '9f86d081..016.', '9f86d081..-16.', '9F86D081..16.', '9f86d08..16.'],
    ...['9f86d0811..16.', '9f86d081..9007199254740992.', '9f86d081.16.', `9f86d081.${USER}.16.`],
    ...[`9f86d081.${PLAIN.toUpperCase()}.16.`, `9f86d081.${PLAIN}.16..`, `${PLAIN}.9f86d081.16.`, '..16.'],
  ])('the encoding of %j', (text) => {
    expect(parseChangeCursor(encode(text))).toBeUndefined();
  });

  test.each([
    ['with padding', `${encode('.1')}==`],
    ['with bits behind its last byte', 'LjF='],
    ['with other bits behind its last byte', 'LjH'],
    ['in base64 with + or /', '+/'],
    ['with spaces', 'Lj E2'],
    ['as plain text', '16'],
    ['as the id of a change', '16-9f86d081'],
  ])('a text %s', (_title, cursor) => {
    expect(parseChangeCursor(cursor)).toBeUndefined();
  });
});
