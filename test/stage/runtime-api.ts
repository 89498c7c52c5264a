import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listen } from './listening.ts';

/** The outcome of an invocation: the bytes of the result, or the error. */
type Outcome = { readonly result: string } | { readonly error: FunctionError };

type FunctionError = { readonly errorType: string; readonly errorMessage: string };

type Invocation = {
  readonly id: string;
  readonly event: string;
  readonly deadline: number;
  readonly traceHeader: string;
  readonly settle: (outcome: Outcome) => void;
};

const PATH = /^\/2018-06-01\/runtime\/(?:invocation\/(.+)\/(response|error)|(invocation\/next|init\/error))$/;

/** AWS Lambda's side of one function instance: it sends invocations one by one, and receives the results. */
export async function startRuntimeApi() {
  const waiting: Invocation[] = [];
  const underWay = new Map<string, Invocation>();
  let idle: ServerResponse | undefined;
  let refusal: FunctionError | undefined;

  const server = createServer(async (request, response) => {
    const [, id = '', outcome, call] = PATH.exec(request.url ?? '') ?? [];
    if (call === 'invocation/next') {
      idle = response;
      return handOut();
    }
    const body = await text(request);
    if (call === 'init/error') fail(JSON.parse(body));
    else settle(id, outcome === 'response' ? { result: body } : { error: JSON.parse(body) });
    response.writeHead(202).end('{"status":"OK"}');
  });
  const { port } = await listen(server);

  function handOut(): void {
    const invocation = idle && waiting.shift();
    if (!idle || !invocation) return;
    underWay.set(invocation.id, invocation);
    idle.writeHead(200, {
      'Content-Type': 'application/json',
      'Lambda-Runtime-Aws-Request-Id': invocation.id,
      'Lambda-Runtime-Deadline-Ms': String(invocation.deadline),
      'Lambda-Runtime-Invoked-Function-Arn': 'arn:aws:lambda:eu-central-1:123456789012:function:test',
      'Lambda-Runtime-Trace-Id': invocation.traceHeader,
    });
    idle.end(invocation.event);
    idle = undefined;
  }

  function settle(id: string, outcome: Outcome): void {
    underWay.get(id)?.settle(outcome);
    underWay.delete(id);
  }

  function fail(error: FunctionError): void {
    refusal = error;
    for (const { settle } of [...underWay.values(), ...waiting.splice(0)]) settle({ error });
  }

  return {
    /** The value of AWS_LAMBDA_RUNTIME_API. */
    address: `127.0.0.1:${port}`,
    /** Invokes the function with an event, as soon as it requests one, within `seconds`. */
    invoke(event: unknown, { seconds = 30, traceHeader = traced() } = {}): Promise<Outcome> {
      if (refusal) return Promise.resolve({ error: refusal });
      const { promise, resolve } = Promise.withResolvers<Outcome>();
      const deadline = Date.now() + seconds * 1000;
      const given = { id: randomUUID(), event: JSON.stringify(event), deadline, traceHeader };
      waiting.push({ ...given, settle: resolve });
      handOut();
      return promise;
    },
    /** Whether the function waits for an invocation. AWS Lambda would freeze it. */
    get isIdle() {
      return idle !== undefined;
    },
    /** The process has ended, so all its open invocations fail. */
    exit(): void {
      fail({ errorType: 'Runtime.ExitError', errorMessage: 'the process has ended' });
    },
    stop: () => server.close().closeAllConnections(),
  };
}

/** AWS X-Ray's trace header, of an unsampled trace. */
const traced = () =>
  `Root=1-${'0'.repeat(8)}-${randomBytes(12).toString('hex')};Parent=${randomBytes(8).toString('hex')};Sampled=0`;
