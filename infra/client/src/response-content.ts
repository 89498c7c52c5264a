import { UnexpectedAnswer } from './problem.ts';

/**
 * The content of a response. Its stream is read by parts, because a limit after `arrayBuffer` would not limit the memory.
 *
 * @throws {UnexpectedAnswer} for more than this number of MiB
 */
export async function readContent(response: Response, maxMiB: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const add = (part: Uint8Array) => {
    length += part.byteLength;
    if (length > maxMiB * 2 ** 20)
      throw new UnexpectedAnswer(response.status, `the response is larger than ${maxMiB} MiB`);
    parts.push(part);
  };
  // Some runtimes have no streams.
  const reader = response.body?.getReader();
  if (!reader) add(new Uint8Array(await response.arrayBuffer()));
  try {
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) add(part.value);
  } catch (error) {
    // The rest is not read. A stream that broke off has no rest.
    reader?.cancel().catch(() => {});
    throw error;
  }
  const content = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    content.set(part, at);
    at += part.byteLength;
  }
  return content;
}

/** The value of a text of JSON; undefined for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
