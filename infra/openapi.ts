import { readFileSync, writeFileSync } from 'node:fs';
import { endpoints } from '../handlers/index.ts';
import { openApiDocument } from '../lib/openapi/document.ts';
import { readSettings } from '../lib/settings/settings.ts';
import { VERSION } from '../lib/version.ts';

const file = new URL('openapi.json', import.meta.url);
const current = `${JSON.stringify(documentOfDefaults(), null, 2)}\n`;

if (!process.argv.includes('--check')) writeFileSync(file, current);
else if (committed() !== current) {
  process.stderr.write('infra/openapi.json is not current. Run: node infra/openapi.ts\n');
  process.exitCode = 1;
}

/** The document of an instance with only the required settings, except for the issuer, which is not known here. */
function documentOfDefaults() {
  const { requestIdHeader, bodyLimit } = readSettings({
    SVC_OAUTH_JWKS_URI: 'http://localhost',
    SVC_OAUTH_ISSUER: 'any',
    SVC_OAUTH_AUDIENCE: 'any',
  });
  const routes = endpoints.map(({ route }) => route);
  return openApiDocument(routes, { version: VERSION, tokenUrl: '/oauth2/token', requestIdHeader, bodyLimit });
}

function committed(): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
