import type { BuiltHost } from '../../stage/built-service.ts';
import type { DisposablePostgres } from '../../stage/disposable-postgres.ts';
import type { Line } from '../../stage/process.ts';
import { drainEvents, endedBy } from '../../stage/shutdown.ts';
import { until } from '../../stage/until.ts';
import { createCaller } from '../load/caller.ts';
import { type Entry, Ledger } from './ledger.ts';

/** A service that a row has broken things around. */
export type Suspect = {
  readonly host: BuiltHost;
  readonly url: string;
  readonly ledger: Ledger;
  readonly token: () => Promise<string>;
  readonly postgres: Pick<DisposablePostgres, 'countSessions'>;
  /** The most sessions that it and those beside it may have. */
  readonly sessions: () => number;
};

const PLAIN_REQUESTS = 100;

/** What a body may not show: SQL, a stack, the innards of the driver. */
const INNARDS =
  /\b(insert into|select .+ from|update users|delete from)\b|node_modules|\bat .+:\d+:\d+|pg-pool/i;

/** The first part of every token, and a whole address: those in the log are masked after their first letter. */
const SECRETS = /eyJ[\w-]{10,}|[^\s"*<]{2,}@example\.com/;

/**
 * What has to hold after whatever happened: the process is the same, nothing was unhandled, every refusal was a problem
 * with its event in the log, nothing leaked, nothing is left over, and 100 plain requests succeed; then it ends in order,
 * which it does at once only when nothing is in flight. Resolves with a sentence for each fault.
 */
export async function faultsAfterwards(suspect: Suspect): Promise<string[]> {
  const { host, ledger } = suspect;
  if (!host.isAlive())
    return [`the process has ended: ${JSON.stringify(await host.exited)} ${host.errors()}`];
  const faults = [...(await faultsInPlainRequests(suspect)), ...(await faultsInSessions(suspect))];

  const { seconds, code, signal } = await endedBy('SIGTERM', host);
  const drains = drainEvents(host).map(({ event }) => event);
  if (code !== 0 || drains.join() !== 'shutdown_drained' || seconds > 5) {
    faults.push(
      `it ended with ${code ?? signal}, ${drains.join() || 'no drain'}, after ${seconds.toFixed(1)} s`,
    );
  }
  if (host.errors() !== '') faults.push(`standard error: ${host.errors().slice(0, 300)}`);
  return [
    ...faults,
    ...faultsInLog(ledger, host.events()),
    ...leaksIn(host),
    ...summed(ledger.entries.flatMap(faultsInResponse)),
  ];
}

async function faultsInPlainRequests({ url, token }: Suspect): Promise<string[]> {
  const caller = createCaller({ url, token, ledger: new Ledger() });
  const statuses = new Map<number, number>();
  for (let count = 0; count < PLAIN_REQUESTS; count += 1) {
    const { status } = await caller.read('?limit=1');
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  caller.close();
  return statuses.get(200) === PLAIN_REQUESTS
    ? []
    : [`of ${PLAIN_REQUESTS} plain requests afterwards: ${JSON.stringify([...statuses])}`];
}

/** Sessions that were given up end a moment later. */
async function faultsInSessions({ postgres, sessions }: Suspect): Promise<string[]> {
  const isWithin = async () => (await postgres.countSessions()) <= sessions();
  return until('the sessions are within the pool', isWithin, { seconds: 3 }).then(
    () => [],
    async () => [`${await postgres.countSessions()} sessions, and the pools allow ${sessions()}`],
  );
}

/** Every refusal is a problem document, and says nothing of its cause. */
function faultsInResponse({ status, responseHeaders, body, method, path, requestId }: Entry): string[] {
  const text = `${method} ${path.slice(0, 80)} ${status}`;
  if (INNARDS.test(body)) return [`${text} shows its innards: ${body.slice(0, 200)}`];
  if (status < 400) return [];
  if (status === 500) return [`${text}, a defect`];
  const id = responseHeaders['x-request-id'];
  if (id !== requestId) return [`${text} has the request ID ${id}`];
  const problem = problemIn(body);
  const isWhole =
    responseHeaders['content-type'] === 'application/problem+json' &&
    typeof problem.type === 'string' &&
    problem.type.startsWith('urn:svc:error:') &&
    typeof problem.title === 'string' &&
    typeof problem.detail === 'string' &&
    problem.status === status &&
    problem.instance === path.split('?')[0];
  return isWhole ? [] : [`${text} is not a complete problem: ${body.slice(0, 200)}`];
}

function problemIn(body: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(body);
  } catch {
    return {};
  }
}

/** One app_error a refusal, except for those at admission, which are counted together; no defect and no gap. */
function faultsInLog(ledger: Ledger, events: readonly Line[]): string[] {
  const count = (name: string) =>
    events
      .filter(({ event }) => event === name)
      .reduce((sum, { count: counted }) => sum + (Number(counted) || 1), 0);
  const logged = new Map<unknown, number>();
  for (const { event, request_id } of events) {
    if (event === 'app_error') logged.set(request_id, (logged.get(request_id) ?? 0) + 1);
  }
  const refused = ledger.entries.filter(({ status }) => status >= 400);
  const unlogged = refused.filter(({ requestId }) => !logged.has(requestId));
  const faults: string[] = [];
  const atAdmission = unlogged.filter(({ status }) => status === 503).length;
  const excused = count('requests_refused') + count('log_lines_dropped');
  if (unlogged.length > atAdmission && count('log_lines_dropped') === 0) {
    faults.push(`${unlogged.length - atAdmission} refusals have no event in the log`);
  }
  if (atAdmission > excused)
    faults.push(`${atAdmission} times 503 without an event, and ${excused} counted together`);
  const repeated = refused.filter(({ requestId }) => (logged.get(requestId) ?? 0) > 1).length;
  if (repeated > 0) faults.push(`${repeated} refusals have more than one event`);
  const defects = events.filter(
    ({ status_code, event }) => status_code === 500 || event === 'database_refused_value',
  );
  if (defects.length > 0)
    faults.push(`${defects.length} defects: ${JSON.stringify(defects[0]).slice(0, 600)}`);
  return faults;
}

function leaksIn({ printed }: BuiltHost): string[] {
  const [leak] = SECRETS.exec(printed()) ?? [];
  return leak === undefined ? [] : [`the log shows ${leak.slice(0, 80)}`];
}

/** The first few of many, and how many there are. */
export function summed(faults: readonly string[]): string[] {
  const most = 5;
  return faults.length <= most ? [...faults] : [...faults.slice(0, most), `and ${faults.length - most} more`];
}
