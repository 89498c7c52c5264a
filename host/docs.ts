import type { Endpoint } from '../lib/endpoint.ts';
import { openApiDocument } from '../lib/openapi.ts';
import { JSON_TYPE } from '../lib/reply.ts';
import type { Settings } from '../lib/settings.ts';
import packageJson from '../package.json' with { type: 'json' };
import { redoc } from './docs/redoc.ts';
import { served } from './docs/served.ts';
import { swaggerUi } from './docs/swagger-ui.ts';
import { tokenUrlOf } from './docs/token-url.ts';

/** What describes the endpoints, as endpoints: the OpenAPI document, Swagger UI and ReDoc. */
export function documentation(
  endpoints: readonly Endpoint[],
  { oauth, requestIdHeader, bodyLimit }: Pick<Settings, 'oauth' | 'requestIdHeader' | 'bodyLimit'>,
): readonly Endpoint[] {
  const routes = endpoints.map(({ route }) => route);
  const { version } = packageJson;
  const findTokenUrl = tokenUrlOf(oauth.issuer);

  const openApi = served('/openapi.json', {
    mediaType: JSON_TYPE,
    async read() {
      const tokenUrl = await findTokenUrl();
      return {
        text: JSON.stringify(
          openApiDocument(routes, { version, tokenUrl, requestIdHeader, bodyLimit }),
          null,
          2,
        ),
      };
    },
  });
  return [openApi, ...swaggerUi(findTokenUrl), ...redoc()];
}
