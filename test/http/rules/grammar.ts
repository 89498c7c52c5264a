// The grammars of RFC 9110 and RFC 3986 that response fields use.

const TOKEN_TEXT = "[!#$%&'*+.^_`|~\\dA-Za-z-]+";

/** RFC 9110 section 5.6.2. */
export const TOKEN = new RegExp(`^${TOKEN_TEXT}$`);

/** RFC 9110 section 5.5, without obs-text, which a sender should not generate. */
export const VISIBLE = /^[\x21-\x7e](?:[\t \x21-\x7e]*[\x21-\x7e])?$/;

/** RFC 9110 section 8.3.1. */
export const MEDIA_TYPE = new RegExp(
  `^${TOKEN_TEXT}/${TOKEN_TEXT}(?:[ \\t]*;[ \\t]*${TOKEN_TEXT}=(?:${TOKEN_TEXT}|"[^"\\\\]*"))*$`,
);

/** RFC 9110 section 8.8.3. */
export const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

const ESCAPE = '%[\\dA-Fa-f]{2}';
const PCHAR = `(?:[\\w.~!$&'()*+,;=:@-]|${ESCAPE})`;
const URI_REFERENCE = new RegExp(
  `^(?:[A-Za-z][A-Za-z\\d+.-]*:)?(?://(?:[\\w.~!$&'()*+,;=:@[\\]-]|${ESCAPE})*(?=[/?#]|$))?(?:${PCHAR}|/)*(?:\\?(?:${PCHAR}|[/?])*)?(?:#(?:${PCHAR}|[/?])*)?$`,
);

/** RFC 3986 section 4.1. */
export function isUriReference(text: string): boolean {
  return URI_REFERENCE.test(text);
}
