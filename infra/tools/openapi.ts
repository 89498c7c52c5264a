import { endpoints } from '../../handlers/index.ts';
import { openApiDocument } from '../../lib/openapi/document.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { keepFile } from './generated-file.ts';

keepFile('openapi.json', `${JSON.stringify(documentOfDefaults(), null, 2)}\n`);

/** The document of an instance with only the required settings, except for the issuer, which is not known here. */
function documentOfDefaults() {
  const settings = readSettings({
    SVC_OAUTH_JWKS_URI: 'http://localhost',
    SVC_OAUTH_ISSUER: 'any',
    SVC_OAUTH_AUDIENCE: 'any',
  });
  const routes = endpoints.map(({ route }) => route);
  return openApiDocument(routes, settings, '/oauth2/token');
}
