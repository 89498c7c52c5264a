import { expect } from 'vitest';
import { fieldOf, lint } from '../http/rules/rules.ts';
import type { HttpResponse, RawRequest } from '../stage/raw-request.ts';
import { faultIn, type Operation } from './document.ts';
import type { Fuzzed } from './requests.ts';

/** Fields that an OpenAPI document does not list, and those of the message. */
const UNDOCUMENTED = ['content-type', 'content-length', 'connection', 'keep-alive', 'date'];

/**
 * The status is documented, and so are the media type, the content and the headers. Documented headers that are required
 * are present. An error is a problem. The rules of HTTP are kept.
 */
export function holdAgainst({ responses }: Operation, request: RawRequest, response: HttpResponse): void {
  const { status, fields, content } = response;
  expect(status).toBeLessThan(500);
  expect(Object.keys(responses)).toContain(String(status));
  const { headers: documented = {}, content: contents = {} } = responses[status] ?? {};

  const [mediaType] = fieldOf(response, 'content-type')?.split(';') ?? [];
  if (mediaType === undefined) expect([contents, content.length]).toEqual([{}, 0]);
  else {
    expect(Object.keys(contents)).toContain(mediaType);
    if (request.method !== 'HEAD') {
      expect(faultIn(contents[mediaType]?.schema ?? {}, JSON.parse(content.toString()))).toBe(undefined);
    }
  }

  const names = fields.map(([name]) => name.toLowerCase()).filter((name) => !UNDOCUMENTED.includes(name));
  expect(names.filter((name) => !Object.hasOwn(documented, name))).toEqual([]);
  for (const [name, { required = false, schema }] of Object.entries(documented)) {
    const value = fieldOf(response, name);
    if (value === undefined) expect([name, required]).toEqual([name, false]);
    else expect(faultIn(schema, schema.type === 'integer' ? Number(value) : value)).toBe(undefined);
  }

  expect(lint({ request, response })).toEqual([]);
  if (status < 400 || request.method === 'HEAD') return;
  expect(JSON.parse(content.toString())).toMatchObject({
    type: expect.stringMatching(/^urn:svc:error:[a-z_]+_error$/),
    instance: request.target.split('?')[0],
  });
}

/**
 * Values in their schemas are never refused as such, and others always, except for items of a partial batch. A refusal
 * that comes before the values is certain.
 */
export function holdAgainstClaim({ claim, body: sent, method }: Fuzzed, response: HttpResponse): void {
  const { status, content } = response;
  if (typeof claim === 'number') expect(status).toBe(claim);
  else if (claim === 'inside') {
    expect(content.toString()).not.toContain('urn:svc:error:validation_error');
    if (method === 'HEAD') expect(status).not.toBe(422);
  } else if (claim === 'outside') {
    const isPartial = sent.toString().includes('"mode":"partial"');
    expect(isPartial ? [200, 422] : [422]).toContain(status);
  }
}
