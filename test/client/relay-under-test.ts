import { beforeEach } from 'vitest';
import { forAllTests } from '../stage/for-all-tests.ts';
import { until } from '../stage/until.ts';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { linesOf } from './command.ts';
import { newSecret, type Sent, startReceiver } from './receiver.ts';

export const SECRETS = [newSecret(), newSecret()];

/** A part of a URL that only its receiver may know. */
export const HIDDEN = 'path-of-the-receiver';

/** A name and a word in the URL of a receiver, which is refused. */
export const USERINFO = 'https://name:word-of-the-user@receiver.example.com/';

/** One service and one receiver for all tests of a file. Each test has a cursor of its own, at the head. */
export function relayUnderTest() {
  const stage = acceptableUnderTest();
  const { files, call } = stage;
  const receiver = forAllTests(() => startReceiver(SECRETS));
  let cursors = 0;
  let cursor: string;
  const nameOf = (what: string) => `${what}-${cursors}`;
  const outputs: string[] = [];

  beforeEach(async () => {
    receiver.answer(() => 204);
    cursors += 1;
    cursor = await stage.storeHead(nameOf('cursor'));
  });

  let named = 0;
  const start = (words: readonly string[] = [], variables: NodeJS.ProcessEnv = {}) => {
    const running = stage.start(['relay', '--cursor', cursor, ...words], {
      USERS_RELAY_URL: `${receiver.url}/${HIDDEN}?key=${HIDDEN}`,
      USERS_RELAY_SECRET: SECRETS.join(' '),
      ...variables,
    });
    void running.ended.then(({ stdout, stderr }) => outputs.push(stdout, stderr));
    return running;
  };
  /** Waits until a condition holds, then ends the command in order. */
  const endWhen = async (running: ReturnType<typeof start>, what: string, look: () => boolean) => {
    await until(what, look, { seconds: 50 });
    running.signal('SIGTERM');
    return running.ended;
  };
  const stored = () => files.read(nameOf('cursor'));

  return {
    stage,
    receiver,
    start,
    endWhen,
    stored,
    /** Everything that the commands have printed. */
    outputs,
    /** The outputs that have a secret, a token, or a part of a URL other than its origin. */
    leaks() {
      const keys = SECRETS.map((secret) => secret.slice('whsec_'.length));
      const hidden = [...keys, String(stage.variables.USERS_TOKEN), HIDDEN, 'word-of-the-user'];
      return outputs.filter((text) => hidden.some((secret) => text.includes(secret)));
    },
    run: (...parameters: Parameters<typeof start>) => start(...parameters).ended,
    /** Relays until the cursor is replaced. */
    relayPage(...parameters: Parameters<typeof start>) {
      const before = stored();
      return endWhen(start(...parameters), 'a page is delivered', () => stored() !== before);
    },
    get cursor() {
      return cursor;
    },
    set cursor(path: string) {
      cursor = path;
    },
    /** Whether a delivery has failed. */
    isTried: ({ printed }: ReturnType<typeof start>) => printed.stderr.includes('is sent again'),
    /** The name of a file of this test, for example `cursor-1`. */
    nameOf,
    async create(count: number): Promise<string[]> {
      const items = Array.from({ length: count }, () => ({ email: `relayed.${++named}@example.com` }));
      const users = (await call('POST', 'batch', { items, mode: 'atomic' })) as { id: string }[];
      return users.map(({ id }) => id);
    },
    /** The changes after the cursor, as the feed has them. */
    async feed() {
      const copy = files.write('copy', stored());
      const { stdout } = await stage.run(['follow', '--once', '--cursor', copy]);
      return { changes: linesOf(stdout) as unknown as Sent[], lines: stdout.split('\n').slice(0, -1) };
    },
  };
}
