import { randomBytes, randomUUID } from 'node:crypto';
import type { Variables } from '../../lib/settings/environment.ts';
import { builtHost } from './build.ts';
import { callerOf, senderTo, untilCreated, untilReady } from './caller.ts';
import { type ReceivedSpan, startOtlpReceiver } from './otlp-receiver.ts';
import { type Line, startProcess } from './process.ts';
import { type Surroundings, startSurroundings } from './service.ts';
import { START_OPTIONS, START_VARIABLES } from './start-command.ts';
import { until } from './until.ts';

// For tests here, so that a build does not count to the time of the first test. Other programs build when they start
// the first host: to load them does nothing.
if (process.env.VITEST) await builtHost();

// Exactly the options of `npm start`, so that users have the measured program. Source maps cost 0.5 ms per stack.
const VARIABLES = Object.fromEntries(START_VARIABLES.map((setting) => setting.split('=')));

export type HostOptions = {
  /** The target of standard output instead of a file, and a function that reads it. */
  readonly output?: Parameters<typeof startProcess>[1]['output'];
  /** A command that runs the host, such as one that sets limits. It must become the host (`exec`). */
  readonly runBy?: readonly string[];
  /** The main file of another host, such as that of the sources or of an earlier version. */
  readonly main?: string;
};

export type BuiltHost = Awaited<ReturnType<typeof startBuiltHost>>;

/** Starts the built host, or that of `main`, with `variables` and those of `npm start` as its whole environment. */
export async function startBuiltHost(variables: Variables, { output, runBy = [], main }: HostOptions = {}) {
  const command = [...runBy, process.execPath, ...START_OPTIONS, main ?? (await builtHost())];
  const host = startProcess(command, { env: { ...VARIABLES, ...variables }, output });
  const { printed, find } = host;

  /** Complete lines only. The last line may still be incomplete. */
  const lines = (): readonly Line[] =>
    printed()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const events = (name?: string) =>
    lines().filter(({ event }) => event !== undefined && (name === undefined || event === name));

  return {
    ...host,
    lines,
    /** The events that were logged so far, or those with this name. */
    events,
    /** The spans that were printed so far. */
    spans: () => lines().filter(({ span_id, event }) => span_id !== undefined && event === undefined),
    /** Its URL as soon as it listens, in either log format. */
    async untilListening(): Promise<string> {
      const port = await find('its port', () => /\blistening\b.*\bport"?[=:](\d+)/.exec(printed())?.[1]);
      return `http://127.0.0.1:${port}`;
    },
    untilEvent: (name: string) => find(`the event ${name}`, () => events(name)[0]),
  };
}

export type BuiltService = Awaited<ReturnType<typeof startBuiltService>>;

/**
 * Starts the built host with a database and an issuer of its own, or as another instance of an existing service. Waits
 * until it is ready and has fetched the keys. Otherwise the fetch would be in the trace of a first request.
 */
export async function startBuiltService(
  variables: Variables = {},
  { beside, ...options }: HostOptions & { readonly beside?: Surroundings } = {},
) {
  const surroundings = await startSurroundings(beside);
  const { database, issuer } = surroundings;
  const environment = { ...surroundings.environment, ...variables };
  const host = await startBuiltHost(environment, options);
  const { SVC_PORT: port } = variables;
  const url = Number(port) > 0 ? `http://127.0.0.1:${port}` : await host.untilListening();
  await untilReady(url);
  if (!beside && environment.SVC_OAUTH_JWKS_URI === issuer.jwksUri)
    await until('the keys are fetched', () => issuer.fetches > 0, { every: 5 });
  const call = callerOf(url, issuer);

  return {
    ...host,
    url,
    database,
    issuer,
    environment,
    call,
    /** Sends the same requests, and resolves with responses as fetch has them. */
    send: senderTo(url, issuer),
    /** Creates a user, and resolves with its id. */
    async createUser(email?: string): Promise<string> {
      const body = () => ({ email: email ?? `${randomUUID()}@example.com` });
      return (await untilCreated(() => call('POST', '/api/v1/users/', body()))).id;
    },
    async remove() {
      await host.remove();
      await surroundings.stop();
    },
  };
}

export type TracedService = Awaited<ReturnType<typeof startTracedService>>;

/** Starts the built service and a receiver of its spans, which it sends with little delay. */
export async function startTracedService(variables: Variables = {}, options: HostOptions = {}) {
  const receiver = await startOtlpReceiver();
  const telemetry = { ...receiver.variables, OTEL_BSP_SCHEDULE_DELAY: '50', ...variables };
  const service = await startBuiltService(telemetry, options);
  return {
    ...service,
    receiver,
    /** Waits until the spans of all earlier requests have been exported, as those of one more request have. */
    async untilExported() {
      const { traceId, headers } = traceOfCaller();
      await service.call('GET', '/api/v1/users/?limit=1', undefined, { headers });
      await receiver.untilTrace(traceId, 2);
    },
    async remove() {
      await service.remove();
      await receiver.stop();
    },
  };
}

/** A trace of a caller, by which a test finds the spans of its request. */
export function traceOfCaller({ sampled = true } = {}) {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  const traceparent = `00-${traceId}-${spanId}-0${sampled ? 1 : 0}`;
  return { traceId, spanId, headers: { traceparent } };
}

/** The span of an incoming request. */
export const isServer = ({ kind }: ReceivedSpan): boolean => kind === 'SERVER';

/** The span of a statement or of an outgoing request. */
export const isClient = ({ kind }: ReceivedSpan): boolean => kind === 'CLIENT';
