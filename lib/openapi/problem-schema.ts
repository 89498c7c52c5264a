import * as z from 'zod';
import type { ProblemDocument } from '../problem.ts';

const detail = z.string().meta({ description: 'What is wrong with it.' });

const ValueFault = z
  .union([
    z.object({
      pointer: z
        .string()
        .meta({ description: 'The body member: a JSON pointer in a URI fragment (RFC 6901).' }),
      detail,
    }),
    z.object({
      parameter: z.string().meta({ description: 'The path or query parameter.' }),
      detail,
    }),
    z.object({
      header: z.string().meta({ description: 'The header field.' }),
      detail,
    }),
  ])
  .meta({ id: 'ValueFault', description: 'One value that is not allowed.' });

/** The schema of every problem document. */
export const Problem = z
  .object({
    type: z.string().meta({ description: 'A URN: `urn:svc:error:` and the code of the problem.' }),
    title: z.string().meta({ description: 'The text of the status.' }),
    status: z.int().min(400).max(599).meta({ description: 'The HTTP status.' }),
    detail: z.string().meta({ description: 'What happened this time.' }),
    instance: z.string().meta({ description: 'The path of the request, without the query.' }),
    errors: z.array(ValueFault).exactOptional().meta({
      description:
        'All that is not allowed, at once: with `validation_error`, and with `conflict_error` of a batch.',
    }),
  })
  .meta({
    id: 'Problem',
    description: 'A problem document (RFC 9457).',
  }) satisfies z.ZodType<ProblemDocument>;
