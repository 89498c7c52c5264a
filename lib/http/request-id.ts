/** A request ID: 1 to 128 characters of visible ASCII. */
export const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

export const REQUEST_ID_FORM = { minLength: 1, maxLength: 128, pattern: REQUEST_ID.source };
