// The loop of AWS Lambda's runtime for Node.js: loads the handler, requests invocations and sends the results.
// The official client (aws-lambda-ric) must be compiled at its installation. npm run suite -- lambda uses it.
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const { AWS_LAMBDA_RUNTIME_API, LAMBDA_TASK_ROOT = '', _HANDLER = '' } = process.env;
const [file, name = ''] = _HANDLER.split('.');

const handler = await load();
for (;;) {
  const { headers, body } = await call('GET', 'invocation/next');
  const path = `invocation/${headers['lambda-runtime-aws-request-id']}`;
  const deadline = Number(headers['lambda-runtime-deadline-ms']);
  process.env._X_AMZN_TRACE_ID = String(headers['lambda-runtime-trace-id']);
  const context = { getRemainingTimeInMillis: () => deadline - Date.now() };
  try {
    const result = await handler(JSON.parse(body), context);
    await call('POST', `${path}/response`, result);
  } catch (error) {
    await call('POST', `${path}/error`, described(error));
  }
}

async function load() {
  try {
    return (await import(join(LAMBDA_TASK_ROOT, `${file}.mjs`)))[name];
  } catch (error) {
    await call('POST', 'init/error', described(error));
    throw error;
  }
}

async function call(method: 'GET' | 'POST', path: string, content?: unknown) {
  const url = `http://${AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/${path}`;
  return new Promise<{ headers: NodeJS.Dict<string | string[]>; body: string }>((resolve, reject) => {
    const asked = request(url, { method }, async (response) =>
      resolve({ headers: response.headers, body: await text(response) }),
    );
    asked.on('error', reject).end(content === undefined ? undefined : JSON.stringify(content));
  });
}

function described(error: unknown) {
  const { name: errorType, message: errorMessage, stack } = error as Error;
  return { errorType, errorMessage, trace: stack?.split('\n') };
}
