import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { lastLine } from './command.ts';

const { files, run, startBreaking } = acceptableUnderTest();

/** Lines of every kind: odd ends, no users, long ones, more than a batch holds by count and by bytes. */
const ODD_LINES = [
  '\ufeff{"email":"odd.0@example.com","full_name":"Zero"}\r\n\n \t\r\n{"email":"odd.torn@example.com"\n[]\n7\n',
  ...Array.from({ length: 330 }, (_, n) => ` {"email":"odd.${n + 1}@example.com", "more":{"n":${n}.0}}\r\n`),
  Buffer.from('7b22ff227d0a', 'hex'),
  '\ufeff{"id":"k","email":"odd.é@example.com","is_active":"no"}\n',
  `{"email":"odd.${'x'.repeat(1_048_577)}@example.com"}\n`,
  ...Array.from({ length: 9 }, (_, n) => `{"email":"long.${n}@example.com","x":"${'y'.repeat(n * 4000)}"}\n`),
  `{"email":"deep@example.com","x":${'['.repeat(20_000)}${']'.repeat(20_000)}}\n`,
  '{"email":"odd.last@example.com","full_name":null}',
].map((line) => Buffer.from(line));

/** The Idempotency-Key of each batch that the command sends, and its number of items. */
async function keysOf(...words: readonly string[]) {
  const { url, seen } = await startBreaking({});
  const ended = await run(['import', ...words], { USERS_URL: url });
  const batches = seen
    .filter(({ method, target }) => method === 'POST' && target.endsWith('/batch'))
    .map(({ fields, body }) => {
      const key = fields.find(([name]) => name.toLowerCase() === 'idempotency-key')?.[1];
      return `${JSON.parse(body.toString()).items.length} ${key}`;
    });
  return { keys: batches.sort(), ended };
}

test('JSON lines: batches and keys are those that 1.3.0 makes', async () => {
  const { keys, ended } = await keysOf(files.write('odd.ndjson', Buffer.concat(ODD_LINES)));
  const digest = createHash('sha256').update(keys.join('\n')).digest('hex');

  expect(lastLine(ended.stderr)).toBe('created 341, exists 0, refused 7');
  expect([keys.length, digest]).toEqual([
    8,
    '0ee0f8b45bc3771c1b012fb368489152a2f29fc496b789643a86c7dabc306ff8',
  ]);
});

test('a number that JavaScript cannot hold is one refused line, and the batches around it are those of 1.3.0', async () => {
  const numbers = ['1e999', '-1e999', `1${'0'.repeat(309)}`];
  const bad = [...numbers.map((one) => `"score":${one}`), '"full_name":1e999', '"more":{"a":[null,1e400]}'];
  const good = Array.from({ length: 195 }, (_, n) => `{"email":"score.${n}@example.com","score":1e308}\n`);
  const lines = bad.map((member, n) => `{"email":"bad.${n}@example.com",${member}}\n`);
  const file = (middle: readonly string[]) => [...good.slice(0, 10), ...middle, ...good.slice(10)].join('');
  const { keys, ended } = await keysOf(files.write('score', file(lines)), '--rejected', files.pathOf('no'));
  const before = await keysOf(files.write('score', file(lines.map((line) => line.replace(/,.*/, '}')))));
  const refused = files.lines('no') as { line: number; email: string; problem: { errors: unknown } }[];

  expect(lastLine(ended.stderr)).toBe('created 195, exists 0, refused 5');
  expect(refused.map(({ line, email, problem }) => [line, email, problem.errors])).toEqual(
    bad.map((_, n) => [
      n + 11,
      `bad.${n}@example.com`,
      [{ pointer: '#', detail: 'must not have a number beyond 1.8e308' }],
    ]),
  );
  const second = (all: readonly string[]) => all.filter((key) => key.startsWith('100 '));
  expect([keys.length, before.keys.length]).toEqual([2, 2]);
  expect(second(before.keys)).toEqual(expect.arrayContaining(second(keys)));
});

/** The items that the command sends for a file, and the end of the command. */
async function importFile(content: string | Buffer, ...words: readonly string[]) {
  const { url, seen } = await startBreaking({});
  const ended = await run(['import', files.write('users', content), ...words], { USERS_URL: url });
  const items = seen
    .filter(({ method, target }) => method === 'POST' && target.endsWith('/batch'))
    .flatMap(({ body }) => JSON.parse(body.toString()).items);
  return { items, ended };
}

const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');
const gzips = (...texts: readonly string[]) => Buffer.concat(texts.map((text) => gzipSync(text)));
const one = { email: 'shape@example.com' };
const line = JSON.stringify(one);

describe('a file is read in the format of its content', () => {
  test.each<[string, string | Buffer, readonly object[], ...string[]]>([
    ['JSON lines', `${line}\n`, [one]],
    ['a line without its end', line, [one]],
    ['a JSON array', `[${line}]`, [one]],
    ['a JSON array over several lines', `\ufeff [\n${line},\r\n  ${line}\r]\n`, [one, one]],
    ['one object of a JSON array in a line', `[\n${line}\n]\n`, [one]],
    [
      'an indented JSON array',
      JSON.stringify([one, { ...one, full_name: ']},"[{' }], null, 2),
      [one, { ...one, full_name: ']},"[{' }],
    ],
    [
      'users of an object',
      JSON.stringify({ realm: 'x', groups: [{ users: [1] }], users: [one], end: {} }),
      [one],
    ],
    [
      'users of an indented object',
      JSON.stringify({ realm: '{"users":[', users: [one, one] }, null, 1),
      [one, one],
    ],
    ['other members of JSON', JSON.stringify([{ ...one, more: { a: '\\' }, __proto__x: 1 }]), [one]],
    ['CSV', 'email,full_name\nshape@example.com,Ann\n', [{ ...one, full_name: 'Ann' }]],
    ['CSV with CRLF', 'email,full_name\r\nshape@example.com,Ann\r\n', [{ ...one, full_name: 'Ann' }]],
    [
      'CSV with CR',
      'email,full_name\rshape@example.com,Ann\rshape@example.com,\r',
      [{ ...one, full_name: 'Ann' }, one],
    ],
    [
      'CSV with mixed line ends',
      'email\nshape@example.com\r\nshape@example.com\rshape@example.com',
      [one, one, one],
    ],
    [
      'CSV with semicolons',
      '\ufeffemail;full_name\nshape@example.com;"a, b"\n',
      [{ ...one, full_name: 'a, b' }],
    ],
    ['CSV with tabs', 'email\tfull_name\nshape@example.com\ta,b\n', [{ ...one, full_name: 'a,b' }]],
    ['CSV with one column', '"email"\n"shape@example.com"\n', [one]],
    [
      'headers in any case',
      ' EMAIL ,Full_Name,Is_Active\nshape@example.com,,YES\n',
      [{ ...one, is_active: true }],
    ],
    [
      'states',
      `email,is_active\n${['TRUE', 'Yes', '1', ' false ', 'NO', '0', '', ' '].map((cell) => `shape@example.com,${cell}\n`).join('')}`,
      [true, true, true, false, false, false]
        .map((is_active): object => ({ ...one, is_active }))
        .concat([one, one]),
    ],
    ['sep=', 'sep=;\r\nemail;full_name\r\nshape@example.com;A\r\n', [{ ...one, full_name: 'A' }]],
    [
      '#TYPE',
      '#TYPE System.Data\r\n"email","full_name"\r\n"shape@example.com","A"\r\n',
      [{ ...one, full_name: 'A' }],
    ],
    ['records of empty cells', 'email,full_name\n\n,\n ,,\nshape@example.com,\n""\n', [one]],
    ['quotes', 'email,full_name\nshape@example.com,"A ""B"", C"\n', [{ ...one, full_name: 'A "B", C' }]],
    [
      'a line end in another column',
      'email,notes,full_name\nshape@example.com,"a\r\nb","A"\n',
      [{ ...one, full_name: 'A' }],
    ],
    ['UTF-16', utf16('email;full_name\r\nshape@example.com;é𝄞\r\n'), [{ ...one, full_name: 'é𝄞' }]],
    ['UTF-16 of the other order', utf16(`${line}\n`).swap16(), [one]],
    ['UTF-16 of a JSON array', utf16(`[${line}]`), [one]],
    ['gzip', gzipSync(`${line}\n`), [one]],
    ['gzip of CSV', gzipSync('email\nshape@example.com\n'), [one]],
    ['two gzips after one another', gzips(`${line}\n`, `${line}\n`), [one, one]],
    [
      'a mark in the middle',
      'email,full_name\nshape@example.com,\ufeffA\n',
      [{ ...one, full_name: '\ufeffA' }],
    ],
    [
      'windows-1252',
      Buffer.from('email,full_name\nshape@example.com,Ren\xe9 \x80\x92\n', 'latin1'),
      [{ ...one, full_name: 'René €’' }],
      '--encoding',
      'windows-1252',
    ],
    [
      'JSON lines in latin1',
      Buffer.from('{"email":"shape@example.com","full_name":"\xe9"}\n', 'latin1'),
      [{ ...one, full_name: 'é' }],
      '--encoding',
      'latin1',
    ],
    [
      'UTF-16 without a mark',
      Buffer.from('email\nshape@example.com\n', 'utf16le'),
      [one],
      '--encoding',
      'utf-16le',
    ],
    ['--format', gzips(`${'x'.repeat(16_384)};email\n;shape@example.com`), [one], '--format', 'csv'],
    [
      'columns',
      'Mail,ID,Off\nshape@example.com,7,no\n',
      [{ ...one, external_id: '7', is_active: true }],
      '--columns',
      'email=Mail,external_id="ID"',
      '--columns',
      'is_active=!Off',
    ],
    ['a column with = and a comma', '"a=b, c"\nshape@example.com\n', [one], '--columns', 'email=a=b, c'],
    [
      'a column for two members',
      'Mail\nshape@example.com\n',
      [{ email: one.email, external_id: one.email }],
      '--columns',
      'email=Mail,external_id=Mail',
    ],
    [
      'a column of another name',
      'email,mail\nold@x,shape@example.com\n',
      [{ full_name: 'old@x', email: one.email }],
      '--columns',
      'full_name=email,email=mail',
    ],
    [
      'columns of JSON',
      JSON.stringify([{ mail: one.email, blocked: true, email_verified: 1 }, { mail: one.email }]),
      [{ ...one, is_active: false }, one],
      '--columns',
      'email=mail,is_active=!blocked',
    ],
    ['columns of JSON lines', `{"mail":"shape@example.com","x":1}\n`, [one], '--columns', 'email=mail'],
    [
      'an ignored column',
      'email,Status,Enabled\nshape@example.com,x,y\n',
      [one],
      '--ignore',
      'status',
      '--ignore',
      'ENABLED',
    ],
    [
      'an ignored member',
      `[{"email":"shape@example.com","is_active":false}]`,
      [one],
      '--ignore',
      'is_active',
    ],
  ])('%s', async (_, content, items, ...words) => {
    const sent = await importFile(content, ...words);

    expect(sent.items).toEqual(items);
    // 3: a user of an inactive line was active before.
    expect([0, 3]).toContain(sent.ended.code);
  });
});

describe('a file that is not whole or not understood', () => {
  const a = 'email,full_name\nshape@example.com,A\n';
  test.each<[string, string | Buffer, number, RegExp, number, ...string[]]>([
    [
      'objects over several lines',
      JSON.stringify(one, null, 1).repeat(2),
      2,
      /Line 3: an object without a list "users"/,
      0,
    ],
    [
      'an object without users',
      JSON.stringify({ realm: 1 }, null, 1),
      2,
      /Line 3: an object without a list/,
      0,
    ],
    [
      'no header for a member',
      'Mail,Who@x,Name\na,b,c\n',
      2,
      /first headers: Mail, Name\. .*--columns email=/,
      0,
    ],
    ['no header', 'shape@example.com,Ann\n', 2, /first headers: Ann\. /, 0],
    ['| between cells', 'email|full_name\nshape@example.com|A\n', 2, /first headers: email\|full_name/, 0],
    ['no email', 'full_name\nAnn\n', 2, /no column email/, 0],
    ['U+0000', Buffer.from('email\nshape@example.com\n', 'utf16le'), 2, /--encoding utf-16le/, 0],
    ['JSON in UTF-16 without a mark', Buffer.from(`${line}\n`, 'utf16le'), 2, /--encoding utf-16le/, 0],
    ['a ZIP', 'PK\x03\x04\n', 2, /Excel/, 0],
    ['an array without its end', `[${line},${line}`, 1, /Line 1: the file ends/, 1],
    ['an array without its end at a line', `[\n${line},\n${line}\n`, 1, /Line 4: the file ends/, 1],
    ['a missing comma', `[${line}\n${line}]`, 1, /Line 1: not JSON/, 0],
    ['a comma at the end', `[${line},\n]`, 1, /Line 2: not JSON/, 1],
    ['text after the array', `[${line}]\n7`, 1, /Line 2: something follows/, 1],
    ['an element that is not JSON', `[${line},\n{"email":}]`, 1, /Line 2: not JSON/, 1],
    ['an open quote', `${a}"shape@example.com,B\n`, 1, /Line 3: its quote is not closed/, 1],
    ['a quote within a cell', `${a}shape@example.com,B "C"\n${a}`, 1, /Line 3: a quote within/, 1],
    [
      'a quote that is closed two lines later',
      `${a}shape@example.com,B"\nx,y\nz,"C\n`,
      1,
      /Line 3: a quote within/,
      1,
    ],
    ['text after a closing quote', `${a}shape@example.com,"B" \n`, 1, /Line 3: text after/, 1],
    ['a cut gzip', gzipSync(a.repeat(9)).subarray(0, 40), 1, /gzip: unexpected end/, 0],
    [
      'a cut second gzip',
      Buffer.concat([gzipSync(a), gzipSync(a).subarray(0, 15)]),
      1,
      /gzip: unexpected end/,
      1,
    ],
    [
      'another encoding',
      Buffer.from(`${a}shape@example.com,Ren\xe9\n${a}`, 'latin1'),
      1,
      /line 3: .*--encoding/,
      1,
    ],
    [
      'another encoding of JSON',
      Buffer.from(`[${line},\n{"email":"\xe9"}]`, 'latin1'),
      1,
      /line 2: .*--encoding/,
      1,
    ],
    ['a character that is cut off', Buffer.from(`${a}x,\xc3`, 'latin1'), 1, /line 3: .*--encoding/, 1],
    ['half of UTF-16', Buffer.concat([utf16(a), Buffer.from([0x41])]), 1, /line 3: /, 1],
    ['two columns', 'email,EMAIL\nx@y,z@y\n', 2, /two columns for email/, 0],
    [
      'two columns by an option',
      'email,Mail\nx@y,z@y\n',
      2,
      /two columns for email/,
      0,
      '--columns',
      'email=Mail',
    ],
    [
      'two columns of one name',
      'Mail,Mail\nx@y,z@y\n',
      2,
      /two columns for email/,
      0,
      '--columns',
      'email=Mail',
    ],
    [
      'two columns of JSON',
      '[{"email":"x@y","mail":"z@y"}]',
      2,
      /two columns for email/,
      0,
      '--columns',
      'email=mail',
    ],
    ['a column that CSV does not have', a, 2, /no column Mail/, 0, '--columns', 'external_id=Mail'],
    [
      'a member that JSON does not have',
      `[${line}]`,
      2,
      /no column mail/,
      0,
      '--columns',
      'external_id=mail',
    ],
    [
      'a member that JSON lines do not have',
      `${line}\n`.repeat(101),
      2,
      /no column mail/,
      0,
      '--columns',
      'external_id=mail',
    ],
    ...['enabled', 'Disabled', 'ACTIVE', 'blocked', 'suspended', 'status', 'accountEnabled'].flatMap(
      (name): [string, string, number, RegExp, number][] => [
        [
          `a state ${name} of CSV`,
          `email,${name}\nx@y,1\n`,
          2,
          new RegExp(`is_active=${name} .*--ignore ${name}`),
          0,
        ],
        [`a state ${name} of JSON`, `[{"email":"x@y","${name}":true}]`, 2, new RegExp(`--ignore ${name}`), 0],
      ],
    ),
    [
      'a state of a late user',
      JSON.stringify([...Array(1000).fill(one), { ...one, blocked: true }]),
      2,
      /--ignore blocked/,
      0,
    ],
  ])('%s', async (_, content, code, message, sent, ...words) => {
    const { items, ended } = await importFile(content, ...words);

    expect(ended.stderr).toMatch(message);
    expect([ended.code, items.length]).toEqual([code, sent]);
  });
});

test('records and elements that are no users are refused, each with its line, and the others are created', async () => {
  const long = 'x'.repeat(1_048_577);
  const csv = [
    'email,full_name,is_active,note',
    'odd@example.com,A,maybe,',
    'shape@example.com,B',
    'shape@example.com,C,,,',
    '"odd@example.com\n",D,,',
    'shape@example.com,E,1,"a',
    'b"',
    `shape@example.com,F,,${long}`,
    `shape@example.com,G,,${long.slice(0, 1_048_576 - 22)}`,
    'shape@example.com,H,,',
  ];
  const json = [5, null, 'x', [], { email: 1 }, { is_active: 'no' }, { email: long }, { x: 1e308 }, one].map(
    (value) => JSON.stringify(value),
  );
  const read = async (content: string, name: string) => {
    const { items, ended } = await importFile(content, '--rejected', files.pathOf(name));
    const rejected = files.lines(name) as {
      line: number;
      index?: number;
      problem: { errors?: { pointer: string; detail: string }[]; detail: string };
    }[];
    return {
      items: items.map(({ full_name }) => full_name),
      refused: rejected
        .toSorted((a, b) => a.line - b.line || Number(a.index) - Number(b.index))
        .map(({ line, index, problem }) => [line, index, problem.errors?.[0]?.detail ?? problem.detail]),
      last: lastLine(ended.stderr),
    };
  };

  expect(await read(`${csv.join('\n')}\n`, 'no-csv')).toEqual({
    items: ['E', 'G', 'H'],
    refused: [
      [2, undefined, 'must be true, false, yes, no, 1 or 0'],
      [3, undefined, 'must have 4 cells, as the header has'],
      [4, undefined, 'must have 4 cells, as the header has'],
      [5, undefined, 'must not have a line end'],
      [9, undefined, 'The line is too long.'],
    ],
    last: 'created 0, exists 3, refused 5',
  });
  expect(await read(`[\n${json.join(',\n')},1e999,{"x":1e999}]`, 'no-json')).toEqual({
    items: [undefined, undefined, undefined],
    refused: [
      [2, 0, 'must be an object'],
      [3, 1, 'must be an object'],
      [4, 2, 'must be an object'],
      [5, 3, 'must be an object'],
      [6, 4, 'must be a string'],
      [7, 5, 'must be a boolean'],
      [8, 6, 'The line is too long.'],
      [9, 7, 'must be present'],
      [10, 9, 'must be an object'],
      [10, 10, 'must not have a number beyond 1.8e308'],
    ],
    last: 'created 0, exists 1, refused 10',
  });
});
