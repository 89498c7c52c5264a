import { UnexpectedAnswer } from './problem.ts';

/** The text of a response, or an `UnexpectedAnswer` for more than this number of MiB. */
export async function readText(response: Response, maxMiB: number): Promise<string> {
  // Some runtimes have no streams.
  const reader = response.body?.getReader();
  const decoder = reader && new TextDecoder();
  let text = reader ? '' : await response.text();
  for (let length = text.length; ; ) {
    if (length > maxMiB * 2 ** 20) {
      reader?.cancel().catch(() => {});
      throw new UnexpectedAnswer(response.status, `the response is larger than ${maxMiB} MiB`);
    }
    const part = await reader?.read();
    if (!part || part.done) return text + (decoder?.decode() ?? '');
    length += part.value.byteLength;
    text += decoder?.decode(part.value, { stream: true });
  }
}

/** The value of a text of JSON; undefined for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
