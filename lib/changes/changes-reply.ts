import * as z from 'zod';
import { cacheControl, JSON_TYPE, NEXT_LINK, type Reply } from '../http/reply.ts';
import { Change, changeJson, MAX_PAGE_SIZE } from './change.ts';
import type { ChangesPage } from './changes.ts';

/** A page of changes, as a plain list or as a batch of CloudEvents, and the link to the next page. */
export const changesReply: Reply<ChangesPage> = {
  mediaType: JSON_TYPE,
  onDemand: 'application/cloudevents-batch+json; charset=utf-8',
  schema: z.array(Change).max(MAX_PAGE_SIZE),
  write: ({ changes }) => `[${changes.map(changeJson).join()}]`,
  headers: {
    ...cacheControl('private, no-cache'),
    Link: {
      description: 'Link to the next page (RFC 8288). Always present, because changes go on.',
      values: NEXT_LINK,
      example: '</api/v1/users/changes?cursor=OWY4NmQwODEuLjQ3MTEu&limit=100>; rel="next"',
      of: ({ next }) => `<${next}>; rel="next"`,
    },
  },
};
