import type { Row } from '../run-row.ts';

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
