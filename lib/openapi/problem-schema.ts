import * as z from 'zod';
import type { ProblemDocument } from '../http/problem.ts';
import { MAX_HEAD_LENGTH } from '../text.ts';

/** A text of one line. The service's texts are shorter. Some of them list media types or methods. */
const sentence = () => z.string().regex(/^.+$/).max(256);
const name = () =>
  z
    .string()
    .regex(/^[A-Za-z_-]+$/)
    .max(64);

/** A batch has at most 100 items, and each item at most 10 faults. */
const MAX_FAULTS = 1000;

const detail = sentence().meta({ description: 'What is wrong with it.' });

const ValueFault = z
  .union([
    z.object({
      pointer: z
        .string()
        .regex(/^#(?:\/.*)?$/)
        .max(256)
        .meta({ description: 'The body member: a JSON pointer in a URI fragment (RFC 6901).' }),
      detail,
    }),
    z.object({
      parameter: name().meta({ description: 'The path or query parameter.' }),
      detail,
    }),
    z.object({
      header: name().meta({ description: 'The header field.' }),
      detail,
    }),
  ])
  .meta({ id: 'ValueFault', description: 'One invalid value.' });

/** The schema of every problem document. */
export const Problem = z
  .object({
    type: z
      .string()
      .regex(/^urn:svc:error:[a-z_]+$/)
      .max(64)
      .meta({ description: 'A URN: `urn:svc:error:` and the code of the problem.' }),
    title: z
      .string()
      .regex(/^[A-Z][A-Za-z ]+$/)
      .max(64)
      .meta({ description: 'The text of the status.' }),
    status: z.int().min(400).max(599).meta({ format: 'int32', description: 'The HTTP status.' }),
    detail: sentence().meta({ description: 'What is wrong with this request.' }),
    instance: z
      .string()
      .regex(/^\//)
      .max(MAX_HEAD_LENGTH)
      .meta({ description: 'The path of the request, without the query.' }),
    errors: z.array(ValueFault).max(MAX_FAULTS).exactOptional().meta({
      description: 'All invalid values: with `validation_error`, and with `conflict_error` of a batch.',
    }),
  })
  .meta({
    id: 'Problem',
    description: 'A problem document (RFC 9457).',
  }) satisfies z.ZodType<ProblemDocument>;
