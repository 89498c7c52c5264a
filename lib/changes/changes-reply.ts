import * as z from 'zod';
import { cacheControl, JSON_TYPE, type Reply } from '../reply.ts';
import { Change } from './change.ts';
import { changeJson } from './change-json.ts';
import type { ChangesPage } from './changes.ts';

/** A page of changes: a plain list, or the same as a batch of CloudEvents, and the way to the next page. */
export const changesReply: Reply<ChangesPage> = {
  mediaType: JSON_TYPE,
  onDemand: 'application/cloudevents-batch+json; charset=utf-8',
  schema: z.array(Change),
  write: ({ changes }) => `[${changes.map(changeJson).join()}]`,
  headers: {
    ...cacheControl('private, no-cache'),
    Link: {
      description: 'Where the next page is (RFC 8288): there always is one, since changes go on.',
      example: '</api/v1/users/changes?cursor=OWY4NmQwODEuLjQ3MTEu&limit=100>; rel="next"',
      of: ({ next }) => `<${next}>; rel="next"`,
    },
  },
};
