import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GatewayEvent } from '../../lib/http/gateway.ts';

const folder = join(import.meta.dirname, '../../events');

/** The user that the events are about. */
const EXAMPLE_ID = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';

/** What a test knows better than the event. */
export type EventParticulars = {
  readonly token?: string;
  /** Takes the place of the example's id, wherever that is named. */
  readonly id?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** An event of `events/` by its name, with what a test knows better filled in. */
export async function eventOf(
  name: string,
  { token = '', id = EXAMPLE_ID, body, headers }: EventParticulars = {},
): Promise<GatewayEvent> {
  const text = await readFile(join(folder, `${name}.json`), 'utf8');
  const event: GatewayEvent = JSON.parse(text.replaceAll('{{token}}', token).replaceAll(EXAMPLE_ID, id));
  const length = body !== undefined && { 'content-length': String(Buffer.byteLength(body)) };
  return {
    ...event,
    ...(body !== undefined && { body, isBase64Encoded: false }),
    headers: { ...event.headers, ...length, ...headers },
  };
}
