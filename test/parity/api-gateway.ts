import { isUtf8 } from 'node:buffer';
import { functions } from '../../infra/functions.ts';
import { routeKeys } from '../../infra/lambda/route-keys.ts';
import type { GatewayEvent } from '../../lib/http/gateway.ts';
import type { RawRequest } from '../stage/raw-request.ts';

/** Content types that API Gateway passes as text. */
const TEXT = /^(text\/|application\/(json|javascript|xml|[\w.-]+\+(json|xml)|x-www-form-urlencoded)\b)/i;

/**
 * An HTTP API in front of the deployed functions, payload format 2.0: for a request, the function that receives it and
 * the event. Repeated header fields are joined. The path is
 * decoded, also in `rawPath`, and the query is not. A named stage precedes `rawPath`. A body that is not text is in base64.
 *
 * @see AWS, API Gateway developer guide, "Create AWS Lambda proxy integrations for HTTP APIs". The decoded `rawPath` is in
 * aws/aws-lambda-dotnet, Tools/LambdaTestTool-v2, HttpContextExtensions.
 */
export async function apiGateway() {
  const deployed = await functions();
  // The most specific of the matching routes receives the request.
  const routes = deployed
    .flatMap(({ operationId, route }) =>
      (route ? routeKeys(route) : []).map((routeKey) => ({ operationId, routeKey })),
    )
    .sort((one, other) => one.routeKey.split('{').length - other.routeKey.split('{').length);

  return (request: RawRequest, stage = '$default') => {
    const [path = '', ...query] = request.target.split('?');
    const rawPath = decoded(path) ?? path;
    const found = routes.find(({ routeKey }) => parametersOf(routeKey, request.method, decoded(path)));
    const { operationId, routeKey } = found ?? { operationId: 'unmatched', routeKey: '$default' };
    const stagedPath = stage === '$default' ? rawPath : `/${stage}${rawPath}`;
    const event = {
      version: '2.0',
      routeKey,
      rawPath: stagedPath,
      rawQueryString: query.join('?'),
      headers: headersOf(request),
      requestContext: contextOf(request, stagedPath, routeKey, stage),
      pathParameters: found && parametersOf(routeKey, request.method, rawPath),
      ...contentOf(request),
    };
    return { operationId, event };
  };
}

/** The parameters of the path if the route key matches the request, otherwise undefined. */
function parametersOf(routeKey: string, method: string, path = '') {
  const [known, pattern = ''] = routeKey.split(' ');
  const parts = pattern.split('/');
  const segments = path.split('/');
  if (known !== method || parts.length !== segments.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const segment = segments[index] as string;
    const [, name] = /^\{(\w+)\}$/.exec(part) ?? [];
    if (name && segment !== '') parameters[name] = segment;
    else if (part !== segment) return undefined;
  }
  return parameters;
}

/** Undefined if it is not valid percent-encoded UTF-8. */
function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

function headersOf({ fields, body }: RawRequest): Record<string, string> {
  const headers: Record<string, string> = {
    'content-length': String(body.length),
    host: 'a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com',
    'x-amzn-trace-id': 'Root=1-6a0ed7b2-4f1d2c3b5a69788700001eef',
    'x-forwarded-proto': 'https',
  };
  for (const [field, value] of fields) {
    const name = field.toLowerCase();
    headers[name] = headers[name] === undefined ? value : `${headers[name]},${value}`;
  }
  return headers;
}

function contextOf({ method }: RawRequest, path: string, routeKey: string, stage: string) {
  return {
    domainName: 'a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com',
    http: { method, path, protocol: 'HTTP/1.1', sourceIp: '198.51.100.23', userAgent: 'test' },
    requestId: 'Ucr5xGgBiAQkJwE=',
    routeKey,
    stage,
  };
}

function contentOf({ fields, body }: RawRequest): Pick<GatewayEvent, 'body' | 'isBase64Encoded'> {
  if (body.length === 0) return { isBase64Encoded: false };
  const [, type = ''] = fields.find(([name]) => name.toLowerCase() === 'content-type') ?? [];
  const isText = TEXT.test(type) && isUtf8(body);
  return { body: body.toString(isText ? 'utf8' : 'base64'), isBase64Encoded: !isText };
}
