import { userIn } from '../../lab/ledger/ledger.ts';
import type { Random } from '../../lab/load/random.ts';
import type { Row } from '../run-row.ts';

/** Of every kind that has broken some program: each is put alone, repeated, and into others. */
// biome-ignore format: one below the other, they would take 150 lines.
const NASTY: readonly string[] = [
  '', ' ', '\t', '\n', '\r\n', '\0', '\x01', '\x1b[31m', '\x7f', '\u0085', '\u00a0', '\u00ad', '\u061c',
  '\u200b', '\u200d', '\u200e', '\u202e', '\u2028', '\u2029', '\u2060', '\ufeff', '\ufffd', '\ufffe',
  '\uffff', '\ud800', '\udfff', '\ud83d', '\u{1f600}', '👨‍👩‍👧‍👦', '🇩🇪', 'é', 'e\u0301', 'ß', 'ẞ', 'ı', 'İ',
  'ﬁ', 'ς', 'σ', 'Σ', 'ǆ', 'Ω', 'K', 'å', '田中さん', '表ポあA鷗ŒéＢ', 'العربية', 'עברית', 'ᚠᛇᚻ',
  'Z̮̞̠͙͔ͅḀ̗̞͈̻̗Ḷ͙͎̯̹̞͓G̻O̭̗̮', '𝕋𝕙𝕖', 'ｆｕｌｌ', '１２３', '٣', 'Ⅷ', 'undefined', 'null', 'NULL', '(null)',
  'nil', 'NaN', 'Infinity', '-Infinity', 'true', 'false', '0', '-0', '1e400', '0x10',
  '99999999999999999999', '1/0', '1,000', '１', '__proto__', 'constructor', 'hasOwnProperty', 'toString',
  'then', '[object Object]', "'", '"', '`', '\\', '\\\\', "\\'", '%', '%00', '%zz', '%2e%2e%2f', '%c0%af',
  '+', '&', '=', '?', '#', '/', '//', '../', '..\\', "' OR 1=1--", "'; DROP TABLE users;--",
  "' UNION SELECT null--", '1; SELECT pg_sleep(10)', "E'\\x27'", '$1', '$$', '{{7*7}}', '$' + '{7*7}',
  '#{7*7}', '<%= 7*7 %>', '{% raw %}', '<script>alert(1)</script>', '<img src=x onerror=alert(1)>',
  '"><svg/onload=x>', 'javascript:alert(1)',
  '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>', '<![CDATA[',
  '*)(uid=*))(|(uid=*', '=cmd|x', '@SUM(1)', '| id', '; id', '$(id)', '`id`', '&& id',
  '\r\nSet-Cookie: a=b', '\r\n\r\nHTTP/1.1 200 OK', '/dev/null', 'CON', 'file:///etc/passwd',
  'http://169.254.169.254/', 'a@b@c', '@', 'a@', '@b', '"a b"@c', 'a@[127.0.0.1]', '(((((((((((', '[[[[[[',
  'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '\ud800@\udfff', 'test\u2028test', '﷽', 'ﷺ', '\u{e0041}', '\u{10ffff}',
  '🏳️‍🌈', 'پ', 'ЀЁЂ', 'ΑΒΓ', 'ÅÄÖ', '社會科學院', '𠜎𠜱', 'ヽ༼ຈل͜ຈ༽ﾉ',
];

function nastyString(random: Random): string {
  const one = random.pick(NASTY);
  const other = random.pick(NASTY);
  return random.pick([
    one,
    one + other,
    `a${one}b`,
    one.repeat(1 + random.below(40)),
    `${one}@${other}`,
    `x${one}@example.com`,
  ]);
}

export const nastyStrings: Row = {
  name: 'nasty-strings',
  promise:
    'Nasty strings in every field, path and query: 4xx or accepted, never 5xx; what is accepted reads back alike.',
  trials: 25_000,
  brief: 2500,
  async run({ startService, claim, random, trySideBySide }) {
    const service = await startService({}, { isOnItsOwn: true });
    const callers = service.caller(20);
    await trySideBySide(20, async (n) => {
      const text = nastyString(random);
      const place = n % 4;
      if (place < 2) {
        const fields = place === 0 ? { email: text } : { email: `nasty-${n}@example.com`, full_name: text };
        const created = await callers.create(fields);
        claim('a value is accepted or refused', [201, 409, 422].includes(created.status), {
          text,
          ...created,
        });
        if (created.status === 201) {
          const { id } = userIn(created);
          const user = userIn(await callers.read(id));
          const isAlike = Object.entries(fields).every(([name, value]) => user[name as 'email'] === value);
          claim('what is accepted reads back alike', isAlike, { fields, user });
        }
      } else {
        const target = place === 2 ? encoded(text) : `?${random.pick(QUERY)}=${encoded(text)}`;
        const { status } = await callers.read(target);
        const isRight = [200, 400, 404, 405, 422, 431].includes(status);
        claim('a place in the address is accepted or refused', isRight, { target, status });
      }
    });
    callers.close();
    const defects = service
      .events()
      .filter(({ status_code, event }) => status_code === 500 || event === 'validation_gap');
    claim('the log has no defect', defects.length === 0, defects[0]);
  },
};

const QUERY = 'skip limit email is_active ids created_after created_before sort cursor x'.split(' ');

/** Percent-encoded, lone surrogates as the three bytes that stand for them elsewhere. */
function encoded(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80';
}
