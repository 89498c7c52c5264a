import * as z from 'zod';
import type { ProblemDocument } from '../http/problem.ts';
import { MAX_HEAD_LENGTH } from '../text.ts';

const text = (pattern: RegExp, max: number, description: string) =>
  z.string().regex(pattern).max(max).meta({ description });

/** A text of one line. The service's texts are shorter. Some of them list media types or methods. */
const sentence = (description: string) => text(/^.+$/, 256, description);
const name = (description: string) => text(/^[A-Za-z_-]+$/, 64, description);

/** A batch has at most 100 items, and each item at most 10 faults. */
const MAX_FAULTS = 1000;

const detail = sentence('What is wrong with it.');

const ValueFault = z
  .union([
    z.object({
      pointer: text(/^#(?:[/].*)?$/, 256, 'The body member: a JSON pointer in a URI fragment (RFC 6901).'),
      detail,
    }),
    z.object({ parameter: name('The path or query parameter.'), detail }),
    z.object({ header: name('The header field.'), detail }),
  ])
  .meta({ id: 'ValueFault', description: 'One invalid value.' });

export const Problem = z
  .object({
    type: text(/^urn:svc:error:[a-z_]+$/, 64, 'A URN: `urn:svc:error:` and the code of the problem.'),
    title: text(/^[A-Z][A-Za-z ]+$/, 64, 'The text of the status.'),
    status: z.int().min(400).max(599).meta({ format: 'int32', description: 'The HTTP status.' }),
    detail: sentence('What is wrong with this request.'),
    instance: text(
      /^[/*]/,
      MAX_HEAD_LENGTH,
      'The path of the request, without the query; `*` for `OPTIONS *`.',
    ),
    errors: z.array(ValueFault).max(MAX_FAULTS).exactOptional().meta({
      description: 'All invalid values: with `validation_error`, and with `conflict_error` of a batch.',
    }),
  })
  .meta({ id: 'Problem' }) satisfies z.ZodType<ProblemDocument>;
