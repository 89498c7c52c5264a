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

/** The items that the command sends for a file, the number of items and the Idempotency-Key of each batch, and the end. */
async function importFile(content: string | Buffer, ...words: readonly string[]) {
  const { url, seen } = await startBreaking({});
  const ended = await run(['import', files.write('users', content), ...words], { USERS_URL: url });
  const batches = seen
    .filter(({ method, target }) => method === 'POST' && target.endsWith('/batch'))
    .map(({ fields, body }) => {
      const key = fields.find(([name]) => name.toLowerCase() === 'idempotency-key')?.[1];
      return { key, items: JSON.parse(body.toString()).items };
    });
  const keys = batches.map(({ key, items }) => `${items.length} ${key}`).sort();
  return { items: batches.flatMap(({ items }) => items), keys, ended };
}

test('JSON lines: batches and keys are those that 1.3.0 makes', async () => {
  const { keys, ended } = await importFile(Buffer.concat(ODD_LINES));
  const digest = createHash('sha256').update(keys.join('\n')).digest('hex');

  expect(lastLine(ended.stderr)).toBe('created 341, exists 0, refused 7');
  expect(keys).toHaveLength(8);
  expect(digest).toBe('0ee0f8b45bc3771c1b012fb368489152a2f29fc496b789643a86c7dabc306ff8');
});

test('a number that JavaScript cannot hold is one refused line, and the batches around it are those of 1.3.0', async () => {
  const numbers = ['1e999', '-1e999', `1${'0'.repeat(309)}`];
  const bad = [...numbers.map((one) => `"score":${one}`), '"full_name":1e999', '"more":{"a":[null,1e400]}'];
  const good = Array.from({ length: 195 }, (_, n) => `{"email":"score.${n}@example.com","score":1e308}\n`);
  const lines = bad.map((member, n) => `{"email":"bad.${n}@example.com",${member}}\n`);
  const file = (middle: readonly string[]) => [...good.slice(0, 10), ...middle, ...good.slice(10)].join('');
  const { keys, ended } = await importFile(file(lines), '--rejected', files.pathOf('no'));
  const before = await importFile(file(lines.map((line) => line.replace(/,.*/, '}'))));

  expect(lastLine(ended.stderr)).toBe('created 195, exists 0, refused 5');
  const errors = [{ pointer: '#', detail: 'must not have a number beyond 1.8e308' }];
  expect(files.lines('no')).toMatchObject(
    bad.map((_, n) => ({ line: n + 11, email: `bad.${n}@example.com`, problem: { errors } })),
  );
  const second = (all: readonly string[]) => all.filter((key) => key.startsWith('100 '));
  expect([keys.length, before.keys.length]).toEqual([2, 2]);
  expect(second(before.keys)).toEqual(expect.arrayContaining(second(keys)));
});

const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');
const latin1 = (text: string) => Buffer.from(text, 'latin1');
const gzips = (...texts: readonly string[]) => Buffer.concat(texts.map((text) => gzipSync(text)));
const one = { email: 's@x' };
const line = JSON.stringify(one);
const named = (full_name: string) => ({ ...one, full_name });
const A = named('A');

describe('a file is read in the format of its content', () => {
  const odd = named(']},"[{');
  const states = ['TRUE', 'Yes', '1', ' false ', 'NO', '0', '', ' '];
  const active = [true, true, true, false, false, false].map((is_active) => ({ ...one, is_active }));
  test.each<[string, string | Buffer, readonly object[], string?]>([
    ['JSON lines', `${line}\n`, [one]],
    ['a JSON array', `[${line}]`, [one]],
    ['a JSON array over several lines', `\ufeff [\n${line},\r\n  ${line}\r]\n`, [one, one]],
    ['one object of a JSON array in a line', `[\n${line}\n]\n`, [one]],
    ['an indented JSON array', JSON.stringify([one, odd], null, 2), [one, odd]],
    ['users of an object', `{"realm":"x","groups":[{"users":[1]}],"users":[${line}],"end":{}}`, [one]],
    ['users of an indented object', JSON.stringify({ a: '{"users":[', users: [one, A] }, null, 1), [one, A]],
    ['other members of JSON', JSON.stringify([{ ...one, more: { a: '\\' }, __proto__x: 1 }]), [one]],
    ['CSV', 'email,full_name\ns@x,A\n', [A]],
    ['CSV with CRLF', 'email,full_name\r\ns@x,A\r\n', [A]],
    ['CSV with CR', 'email,full_name\rs@x,A\rs@x,\r', [A, one]],
    ['CSV with mixed line ends', 'email\ns@x\r\ns@x\rs@x', [one, one, one]],
    ['CSV with semicolons', '\ufeffemail;full_name\ns@x;"a, b"\n', [named('a, b')]],
    ['CSV with tabs', 'email\tfull_name\ns@x\ta,b\n', [named('a,b')]],
    ['CSV with one column', '"email"\n"s@x"\n', [one]],
    ['headers in any case', ' EMAIL ,Full_Name,Is_Active\ns@x,,YES\n', [{ ...one, is_active: true }]],
    ['states', `email,is_active\n${states.map((cell) => `s@x,${cell}\n`).join('')}`, [...active, one, one]],
    ['sep=', 'sep=;\r\nemail;full_name\r\ns@x;A\r\n', [A]],
    ['#TYPE', '#TYPE "System"."Data\r\n"email","full_name"\r\n"s@x","A"\r\n', [A]],
    ['records of empty cells', 'email,full_name\n\n,\n ,,\ns@x,\n""\n', [one]],
    ['quotes', 'email,full_name\ns@x,"A ""B"", C"\n', [named('A "B", C')]],
    ['a line end in another column', 'email,notes,full_name\ns@x,"a\r\nb","A"\n', [A]],
    ['UTF-16', utf16('email;full_name\r\ns@x;é𝄞\r\n'), [named('é𝄞')]],
    ['UTF-16 of the other order', utf16(`${line}\n`).swap16(), [one]],
    ['two gzips after one another', gzips(`${line}\n`, `${line}\n`), [one, one]],
    ['a mark in the middle', 'email,full_name\ns@x,\ufeffA\n', [named('\ufeffA')]],
    [
      'windows-1252',
      latin1('email,full_name\ns@x,\xe9\x80\x92\n'),
      [named('é€’')],
      '--encoding windows-1252',
    ],
    [
      'JSON lines in latin1',
      latin1('{"email":"s@x","full_name":"\xe9"}\n'),
      [named('é')],
      '--encoding latin1',
    ],
    ['UTF-16 without a mark', Buffer.from('email\ns@x\n', 'utf16le'), [one], '--encoding utf-16le'],
    ['--format', gzips(`${'x'.repeat(16_384)};email\n;s@x`), [one], '--format csv'],
    [
      'columns',
      'Mail,ID,Off\ns@x,7,no\n',
      [{ ...one, external_id: '7', is_active: true }],
      '--columns email=Mail,external_id="ID" --columns is_active=!Off',
    ],
    ['a column with = and a comma', '"a=b,c"\ns@x\n', [one], '--columns email=a=b,c'],
    [
      'a column for two members',
      'M\ns@x\n',
      [{ ...one, external_id: 's@x' }],
      '--columns email=M,external_id=M',
    ],
    ['a column of another name', 'email,M\nold,s@x\n', [named('old')], '--columns full_name=email,email=M'],
    [
      'columns of JSON',
      '[{"mail":"s@x","blocked":true,"email_verified":1},{"mail":"s@x"}]',
      [{ ...one, is_active: false }, one],
      '--columns email=mail,is_active=!blocked',
    ],
    ['columns of JSON lines', '{"mail":"s@x","x":1}\n', [one], '--columns email=mail'],
    ['an ignored column', 'email,Status,Enabled\ns@x,x,y\n', [one], '--ignore status --ignore ENABLED'],
    ['an ignored member', '[{"email":"s@x","is_active":false}]', [one], '--ignore is_active'],
  ])('%s', async (_, content, items, words) => {
    const sent = await importFile(content, ...(words?.split(' ') ?? []));

    expect(sent.items).toEqual(items);
    // 3: a user of an inactive line was active before.
    expect([0, 3]).toContain(sent.ended.code);
  });
});

describe('a file that is not whole or not understood', () => {
  const a = 'email,full_name\ns@x,A\n';
  const late = JSON.stringify([...Array(1000).fill(one), { ...one, blocked: true }]);
  const states = ['enabled', 'Disabled', 'ACTIVE', 'blocked', 'suspended', 'status', 'accountEnabled'];
  test.each<[string, string | Buffer, number, RegExp, number, string?]>([
    ['objects over several lines', '{\n"email":"s@x"\n}{}', 2, /Line 3: an object without a list "users"/, 0],
    ['an object without users', '{\n "realm": 1\n}', 2, /Line 3: an object without a list/, 0],
    ['no header for a member', 'Mail,Who@x,Name\na,b,c\n', 2, /headers: Mail, Name\. .*--columns email=/, 0],
    ['no header', 's@x,Ann\n', 2, /first headers: Ann\. /, 0],
    ['| between cells', 'email|full_name\ns@x|A\n', 2, /first headers: email\|full_name/, 0],
    ['no email', 'full_name\nAnn\n', 2, /no column email/, 0],
    ['U+0000', Buffer.from('email\ns@x\n', 'utf16le'), 2, /--encoding utf-16le/, 0],
    ['U+0000 of JSON', Buffer.from('{"email":"s@x"}\n', 'utf16le'), 2, /--encoding utf-16le/, 0],
    ['a ZIP', 'PK\x03\x04\n', 2, /Excel/, 0],
    ['an array without its end at a line', `[\n${line},\n${line}\n`, 1, /Line 4: the file ends/, 1],
    ['a missing comma', `[${line}\n${line}]`, 1, /Line 1: not JSON/, 0],
    ['a comma at the end', `[${line},\n]`, 1, /Line 2: not JSON/, 1],
    ['text after the array', `[${line}]\n7`, 1, /Line 2: something follows/, 1],
    ['an element that is not JSON', `[${line},\n{"email":}]`, 1, /Line 2: not JSON/, 1],
    ['an open quote', `${a}"s@x,B\n`, 1, /Line 3: its quote is not closed/, 1],
    ['a quote within a cell', `${a}s@x,B "C"\n${a}`, 1, /Line 3: a quote within/, 1],
    ['a quote that is closed two lines later', `${a}s@x,B"\nx,y\nz,"C\n`, 1, /Line 3: a quote within/, 1],
    ['text after a closing quote', `${a}s@x,"B" \n`, 1, /Line 3: text after/, 1],
    ['a cut gzip', gzips(a.repeat(9)).subarray(0, 24), 1, /gzip: unexpected end/, 0],
    ['a damaged gzip', Buffer.concat([gzips(a).subarray(0, -8), Buffer.alloc(8)]), 1, /gzip: incorrect/, 0],
    ['a cut second gzip', gzips(a, a).subarray(0, gzips(a).length + 15), 1, /gzip: unexpected end/, 1],
    ['another encoding', latin1(`${a}s@x,Ren\xe9\n${a}`), 1, /line 3: .*--encoding/, 1],
    ['another encoding of JSON', latin1(`[${line},\n{"email":"\xe9"}]`), 1, /line 2: .*--encoding/, 1],
    ['a character that is cut off', latin1(`${a}x,\xc3`), 1, /line 3: .*--encoding/, 1],
    ['half of UTF-16', Buffer.concat([utf16(a), Buffer.from([0x41])]), 1, /line 3: /, 1],
    ['two columns', 'email,EMAIL\nx@y,z@y\n', 2, /two columns for email/, 0],
    ['two columns of one name', 'M,M\nx@y,z@y\n', 2, /two columns for email/, 0, '--columns email=M'],
    ['two columns of JSON', '[{"email":"x@y","M":"z@y"}]', 2, /two columns for/, 0, '--columns email=M'],
    ['a column that CSV does not have', a, 2, /no column M/, 0, '--columns external_id=M'],
    ['a member that JSON does not have', `[${line}]`, 2, /no column M/, 0, '--columns external_id=M'],
    ['a late fault of JSON lines', `${line}\n`.repeat(101), 2, /no column M/, 0, '--columns external_id=M'],
    ...states.flatMap((name): [string, string, number, RegExp, number][] => [
      [`a state ${name} of CSV`, `email,${name}\nx@y,1\n`, 2, RegExp(`${name} .*--ignore ${name}`), 0],
      [`a state ${name} of JSON`, `[{"email":"x@y","${name}":true}]`, 2, RegExp(`--ignore ${name}`), 0],
    ]),
    ['a state of a late user', late, 2, /--ignore blocked/, 0],
  ])('%s', async (_, content, code, message, sent, words) => {
    const { items, ended } = await importFile(content, ...(words?.split(' ') ?? []));

    expect(ended.stderr).toMatch(message);
    expect([ended.code, items.length]).toEqual([code, sent]);
  });
});

test('records and elements that are no users are refused, each with its line, and the others are created', async () => {
  const long = 'x'.repeat(1_048_577);
  const csv = [
    ...[
      'email,full_name,is_active,note',
      'odd@x,A,maybe,',
      's@x,B',
      's@x,C,,,',
      '"odd@x\n",D,,',
      's@x,E,1,"a',
    ],
    ...['b"', `s@x,F,,${long}`, `s@x,G,,${long.slice(0, 1_048_576 - 8)}`, 's@x,H,,'],
  ];
  const elements = [5, null, 'x', [], { email: 1 }, { is_active: 'no' }, { email: long }, { x: 1e308 }, one];
  const json = elements.map((value) => JSON.stringify(value)).join(',\n');
  const read = async (content: string, name: string) => {
    const { items, ended } = await importFile(content, '--rejected', files.pathOf(name));
    const rejected = files.lines(name) as {
      line: number;
      index?: number;
      problem: { errors?: { detail: string }[]; detail: string };
    }[];
    const refused = rejected
      .toSorted((a, b) => a.line - b.line || Number(a.index) - Number(b.index))
      .map(
        ({ line, index = '', problem }) =>
          `${line} ${index} ${problem.errors?.[0]?.detail ?? problem.detail}`,
      );
    return { names: items.map(({ full_name }) => full_name), refused, last: lastLine(ended.stderr) };
  };

  expect(await read(`${csv.join('\n')}\n`, 'no-csv')).toEqual({
    names: ['E', 'G', 'H'],
    refused: [
      '2  must be true, false, yes, no, 1 or 0',
      '3  must have 4 cells, as the header has',
      '4  must have 4 cells, as the header has',
      '5  must not have a line end',
      '9  The line is too long.',
    ],
    last: 'created 0, exists 3, refused 5',
  });
  expect(await read(`[\n${json},1e999,{"x":1e999}]`, 'no-json')).toEqual({
    names: [undefined, undefined, undefined],
    refused: [
      ...[0, 1, 2, 3].map((index) => `${index + 2} ${index} must be an object`),
      '6 4 must be a string',
      '7 5 must be a boolean',
      '8 6 The line is too long.',
      '9 7 must be present',
      '10 9 must be an object',
      '10 10 must not have a number beyond 1.8e308',
    ],
    last: 'created 0, exists 1, refused 10',
  });
});
