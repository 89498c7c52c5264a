import { truncateSync } from 'node:fs';
import type { ServiceUnderFault, Stage } from '../../lab/stage/stage.ts';
import { createPipe } from '../../stage/pipe.ts';
import { until } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

const LINES = 1500;

/** Requests that are logged by one long line each, and answered all the same. */
async function logMuch({ claim, tried }: Stage, service: ServiceUnderFault): Promise<void> {
  const callers = service.caller(20);
  const statuses = await Promise.all(
    Array.from({ length: LINES }, async () => (await callers.read(`${'/x'.repeat(2500)}`)).status),
  );
  const odd = statuses.filter((status) => status !== 404);
  claim('every request is answered', odd.length === 0, odd[0]);
  const { status } = await callers.create({ email: `${crypto.randomUUID()}@example.com` });
  claim('the service is unaffected', status === 201, status);
  callers.close();
  tried();
}

const hasCount = (text: string) => text.includes('log_lines_dropped');

export const logReaders: Row = {
  name: 'log-readers',
  promise:
    'The reader of the log stalls, dies, or its disk is full: requests are answered, lines dropped and counted.',
  trials: 3,
  brief: 1,
  async run(stage) {
    const { startService, trials, claim, defer } = stage;
    for (let trial = 0; trial < trials; trial += 1) {
      const pipe = createPipe();
      defer(() => pipe.remove());
      const piped = await startService({}, { output: pipe, isOnItsOwn: true });
      await logMuch(stage, piped);
      await until('a reader that stalled gets the count', () => hasCount(pipe.read()));
      pipe.die();
      await logMuch(stage, piped);
      pipe.revive();
      await until('the next reader gets the count', () => hasCount(pipe.read()));
      claim('the process lives', piped.isAlive());

      const runBy = ['sh', '-c', 'ulimit -f 3072; exec "$@"', 'sh'];
      const full = await startService({}, { runBy, isOnItsOwn: true });
      await logMuch(stage, full);
      truncateSync(full.outputFile);
      await until('the file gets the count when there is room again', () => hasCount(full.printed()));
      claim('the process lives', full.isAlive());
    }
  },
};

/** Where a token or an address may be put that has no business there; `T` and `A` stand for them. */
const PLACES = [
  'access_token=T',
  '(T)',
  'T',
  '?access_token=T',
  '?email=A',
  'A',
  'x/A',
  '%3CA%3E',
  'Bearer%20T',
  ';token=T',
  'T.json',
  '~T',
] as const;

const ENCODINGS: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => encodeURIComponent(text),
  (text) => encodeURIComponent(encodeURIComponent(text)),
  (text) => text.replaceAll('.', '%2E'),
  (text) => text.replaceAll('@', '%EF%BC%A0'),
  (text) => text.replaceAll('@', '%2540'),
  (text) => text.toUpperCase().replaceAll('@', '%40'),
];

export const oddSecrets: Row = {
  name: 'odd-secrets',
  promise: 'Tokens and addresses in odd places, in odd encodings: in no log line and in no span.',
  trials: 2000,
  brief: 300,
  async run({ startService, tries, trials, claim, random, issuer, defer }) {
    const service = await startService(
      { SVC_OTEL_ENABLED: 'true', SVC_LOG_LEVEL: 'debug', OTEL_TRACES_EXPORTER: 'console' },
      { isOnItsOwn: true },
    );
    const caller = service.caller(10);
    defer(caller.close);
    const planted: string[] = [];
    for (const trial of tries()) {
      const token = await issuer.sign({ jti: `${trial}` });
      const name = `planted${trial}`;
      const address = `${name}.person@secret.example`;
      planted.push(...token.split('.').slice(1), `${name}.`);
      const encode = random.pick(ENCODINGS);
      const secret = random.pick([token, address]);
      const target = random.pick(PLACES).replace(/[TA]$|T(?=[).])|A(?=%)/, () => encode(secret));
      await caller.read(target, { 'user-agent': random.chance(0.3) ? `client/1.0 ${secret}` : 'client/1.0' });
    }
    service.signal('SIGTERM');
    await service.exited;
    const output = (service.printed() + service.errors()).toLowerCase();
    claim('there is much to look through', service.spans().length > trials / 2, service.spans().length);
    const found = planted.filter((secret) => output.includes(secret.toLowerCase()));
    const [first = ''] = found;
    const at = output.indexOf(first.toLowerCase());
    claim('no secret is in the output', found.length === 0, output.slice(Math.max(0, at - 200), at + 200));
  },
};
