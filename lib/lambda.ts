import type { Endpoint } from './endpoint.ts';
import type { Handler } from './gateway.ts';
import { createEventLog } from './observability/event-log.ts';
import { createLineWriter, type LineWriter } from './observability/line-writer.ts';
import { composeService } from './service.ts';
import { readSettings } from './settings.ts';

/** The endpoint as an AWS Lambda function, composed from the environment at its first call. */
export function lambda({ bind }: Pick<Endpoint, 'bind'>): Handler {
  let bound: { handler: Handler; lines: LineWriter } | undefined;
  return async (event, context) => {
    bound ??= bindToEnvironment(bind);
    const result = await bound.handler(event, context);
    // The process is frozen once the result is out.
    bound.lines.flush();
    return result;
  };
}

function bindToEnvironment(bind: Endpoint['bind']) {
  const lines = createLineWriter();
  const settings = readSettings();
  const service = composeService(settings, createEventLog(settings, lines.write));
  return { handler: bind(service), lines };
}
