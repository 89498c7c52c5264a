import { endpoints } from '../../handlers/index.ts';
import { handler as unmatched } from '../../handlers/unmatched.ts';
import { type FunctionResult, lambda } from '../../lib/lambda.ts';
import { composeService } from '../../lib/service.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { sendOnSocket } from '../http/rules/exchange.ts';
import { startBuiltHost } from '../stage/built-service.ts';
import { untilReady } from '../stage/caller.ts';
import { type LambdaFunction, startFunction } from '../stage/lambda-function.ts';
import { answer, type HttpResponse, type RawRequest, type RawResponse } from '../stage/raw-request.ts';
import { apiGateway } from './api-gateway.ts';

/** An answer in the form that is compared, and the response as it was received. */
export type ComparedResponse = RawResponse & { readonly response: HttpResponse };

export type Way = {
  send(request: RawRequest): Promise<ComparedResponse>;
  stop(): Promise<void>;
};

/** The handlers as they are in the source, in this process, with events of API Gateway. */
export async function startHandlers(environment: Variables): Promise<Way> {
  const gateway = await apiGateway();
  const handlers = new Map(
    endpoints.map((endpoint) => [endpoint.route.operationId, lambda(endpoint, composeService)]),
  );
  // Settings are read at a handler's first call, which is later than this. The log goes to the output of the tests.
  Object.assign(process.env, environment, { SVC_LOG_LEVEL: 'error' });
  return {
    async send(request) {
      const { operationId, event } = gateway(request);
      return answerOf(await (handlers.get(operationId) ?? unmatched)(event));
    },
    stop: async () => {},
  };
}

/** The container host, built, over TCP. */
export async function startHost(environment: Variables): Promise<Way> {
  const host = await startBuiltHost(environment);
  const url = await host.untilListening();
  await untilReady(url);
  return {
    send: async (request) => answered(await sendOnSocket(url, request)),
    stop: host.remove,
  };
}

/** The name of the stage in front of the built functions. It precedes every path that they receive and return. */
const STAGE = 'prod';

/** The bundles of the functions, each in a clean process, through the protocol of AWS Lambda, behind a named stage. */
export async function startFunctions(environment: Variables): Promise<Way> {
  const gateway = await apiGateway();
  const instances = new Map<string, Promise<LambdaFunction>>();

  function instanceOf(operationId: string): Promise<LambdaFunction> {
    const running = instances.get(operationId) ?? startFunction(operationId, environment);
    instances.set(operationId, running);
    return running;
  }

  return {
    async send(request) {
      const { operationId, event } = gateway(request, STAGE);
      const answered = answerOf(await (await instanceOf(operationId)).call(event));
      return { ...answered, headers: withoutStage(answered.headers) };
    },
    async stop() {
      await Promise.all([...instances.values()].map(async (instance) => (await instance).stop()));
    },
  };
}

/** The headers without the stage in their paths. A path that lacks it would differ from those of the other ways. */
function withoutStage(headers: RawResponse['headers']): RawResponse['headers'] {
  const remove = (text = '') =>
    text.includes(`/${STAGE}/api/`) ? text.replace(`/${STAGE}`, '') : `lacks it: ${text}`;
  const paths = Object.entries(headers).filter(([name]) => name === 'location' || name === 'link');
  return { ...headers, ...Object.fromEntries(paths.map(([name, text]) => [name, remove(text)])) };
}

function answerOf({ statusCode, headers, body, isBase64Encoded }: FunctionResult): ComparedResponse {
  const content = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8');
  return answered({ status: statusCode, fields: Object.entries(headers), content });
}

function answered(response: HttpResponse): ComparedResponse {
  return { ...answer(response.status, response.fields, response.content.toString()), response };
}
