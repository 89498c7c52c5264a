import { demand } from '../expect.mjs';

const PAGES = ['/docs', '/redoc', '/openapi.json'];

/** Either all documentation pages exist, or none, as in production. */
export async function documentation({ check, call, refuses }) {
  await check('either all documentation pages are served, or none (production)', async () => {
    const answers = await Promise.all(PAGES.map((path) => call('GET', path)));
    if (answers[0].status !== 200) {
      for (const answer of answers) refuses(answer, 'not_found_error');
      return;
    }
    for (const { request, status, headers, body } of answers) {
      const isPage = /^text\/html/.test(headers['content-type'] ?? '');
      const isDocument = String(body?.openapi).startsWith('3.');
      demand(status === 200 && (isPage || isDocument), `${request} is ${status} ${headers['content-type']}`);
    }
  });
}
