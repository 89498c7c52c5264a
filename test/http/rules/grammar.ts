// The grammars of RFC 9110, RFC 8288 and RFC 3986 that response fields use.

const TOKEN_TEXT = "[!#$%&'*+.^_`|~\\dA-Za-z-]+";
const QUOTED_TEXT = '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\t \\x21-\\x7e])*"';
const PARAMETERS_TEXT = `(?:[ \\t]*;[ \\t]*${TOKEN_TEXT}=(?:${TOKEN_TEXT}|${QUOTED_TEXT}))*`;
const DAYS = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const MONTHS = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';

/** RFC 9110 section 5.6.2. */
export const TOKEN = new RegExp(`^${TOKEN_TEXT}$`);

/** RFC 9110 section 5.5, without obs-text, which a sender should not generate. */
export const FIELD_VALUE = /^(?:[\x21-\x7e](?:[\t \x21-\x7e]*[\x21-\x7e])?)?$/;

/** RFC 9110 section 8.3.1. */
export const MEDIA_TYPE = new RegExp(`^${TOKEN_TEXT}/${TOKEN_TEXT}${PARAMETERS_TEXT}$`);

/** RFC 9110 section 8.8.3. */
export const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

/** RFC 9110 section 5.6.7. */
export const IMF_FIXDATE = new RegExp(`^${DAYS}, \\d\\d ${MONTHS} \\d{4} \\d\\d:\\d\\d:\\d\\d GMT$`);

/** A directive of Cache-Control, RFC 9111 section 5.2. */
export const DIRECTIVE = new RegExp(`^(${TOKEN_TEXT})(?:=(${TOKEN_TEXT}|${QUOTED_TEXT}))?$`);

/** A challenge with its parameters, RFC 9110 section 11.6.1; without the form `token68`, which Bearer does not use. */
export const CHALLENGE = new RegExp(
  `^${TOKEN_TEXT}(?: +${TOKEN_TEXT}=(?:${TOKEN_TEXT}|${QUOTED_TEXT})(?:[ \\t]*,[ \\t]*${TOKEN_TEXT}=(?:${TOKEN_TEXT}|${QUOTED_TEXT}))*)?$`,
);

/** A link and its parameters, RFC 8288 section 3. */
export const LINK = new RegExp(
  `^<([^<>]*)>((?:[ \\t]*;[ \\t]*${TOKEN_TEXT}(?:=(?:${TOKEN_TEXT}|${QUOTED_TEXT}))?)*)$`,
);

/** Names and values, with their quotes, of the parameters of a link, a media type or a challenge. */
export function parseParameters(text: string): readonly (readonly [name: string, value: string])[] {
  const parameter = new RegExp(`(${TOKEN_TEXT})(?:=(${TOKEN_TEXT}|${QUOTED_TEXT}))?`, 'g');
  return [...text.matchAll(parameter)].map(([, name = '', value = '']) => [name.toLowerCase(), value]);
}

/** The members of a list, RFC 9110 section 5.6.1. A comma within quotes or within `<>` does not separate. */
export function splitList(value: string): readonly string[] {
  return [...value.matchAll(/(?:[^",<]|"(?:[^"\\]|\\.)*(?:"|$)|<[^>]*(?:>|$))+/g)]
    .map(([member]) => member.trim())
    .filter((member) => member !== '');
}

const ESCAPE = '%[\\dA-Fa-f]{2}';
const PCHAR = `(?:[\\w.~!$&'()*+,;=:@-]|${ESCAPE})`;
const URI_REFERENCE = new RegExp(
  `^(?:[A-Za-z][A-Za-z\\d+.-]*:)?(?://(?:[\\w.~!$&'()*+,;=:@[\\]-]|${ESCAPE})*(?=[/?#]|$))?(?:${PCHAR}|/)*(?:\\?(?:${PCHAR}|[/?])*)?(?:#(?:${PCHAR}|[/?])*)?$`,
);

/** RFC 3986 section 4.1. */
export function isUriReference(text: string): boolean {
  return URI_REFERENCE.test(text);
}
