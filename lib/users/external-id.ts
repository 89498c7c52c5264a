import { boundedText } from '../text.ts';

const MAX_LENGTH = 255;

/** Unicode category Cc. The escapes have the same meaning in other engines. */
const CONTROL = '\\u0000-\\u001f\\u007f-\\u009f';
const PLAIN = new RegExp(`^[^${CONTROL}]*$`);

/** The form of an external id, for the documentation. */
export const EXTERNAL_ID_FORM = { minLength: 1, maxLength: MAX_LENGTH, pattern: PLAIN.source };

/** The callers' own identifier of a user. */
export const ExternalId = boundedText(1, MAX_LENGTH)
  .refine((text) => PLAIN.test(text), 'must have no control characters')
  .meta({
    ...EXTERNAL_ID_FORM,
    description:
      "The callers' own identifier of the user, without control characters. Unique, compared exactly. Stored and returned as given.",
    example: 'hr-4711',
  });
