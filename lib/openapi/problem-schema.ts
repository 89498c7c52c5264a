import * as z from 'zod';
import type { ProblemDocument } from '../problem.ts';
import { MAX_HEAD_LENGTH } from '../text.ts';

/** Of one line. The service's sentences are shorter; one of them may list the media types or the methods. */
const sentence = () => z.string().regex(/^.+$/).max(256);
const name = () =>
  z
    .string()
    .regex(/^[A-Za-z_-]+$/)
    .max(64);

/** Each of the 100 items of a batch has a fault for every rule that a value of it can break, and at most 10. */
const MOST_FAULTS = 1000;

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
  .meta({ id: 'ValueFault', description: 'One value that is not allowed.' });

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
    detail: sentence().meta({ description: 'What happened this time.' }),
    instance: z
      .string()
      .regex(/^\//)
      .max(MAX_HEAD_LENGTH)
      .meta({ description: 'The path of the request, without the query.' }),
    errors: z.array(ValueFault).max(MOST_FAULTS).exactOptional().meta({
      description: 'All invalid values: with `validation_error`, and with `conflict_error` of a batch.',
    }),
  })
  .meta({
    id: 'Problem',
    description: 'A problem document (RFC 9457).',
  }) satisfies z.ZodType<ProblemDocument>;
