import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GatewayEvent } from '../../lib/http/gateway.ts';

const folder = join(import.meta.dirname, '../../events');

/** The user of the events. */
const EXAMPLE_ID = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';

/** Values of a test that replace those of the event. */
export type EventParticulars = {
  readonly token?: string;
  /** Replaces the id of the example in all places. */
  readonly id?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** An event of `events/` by its name, with the values of the test. */
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
