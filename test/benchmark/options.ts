import { join } from 'node:path';
import { parseArgs } from 'node:util';

const usageOf = (command: string) => `npm run ${command} -- [options]

  --quick              bench: ours, Go, Bun and "hello"; get, create and list: within three minutes
  --targets a,b        bench: only these targets
  --with 'words'       bench: ours with these settings and options of Node's, too, such as
                       --with 'SVC_POSTGRES_POOL_SIZE=4 --max-semi-space-size=8'; may be given several times.
                       An absolute path is another checkout, whose build is compared
  --workloads a,b      only these workloads
  --rounds n           how often all is run (5; quick 3)
  --seconds n          seconds that are counted in each run (3; quick 2)
  --connections n      connections that send at the same time (64)
  --users n            users in the table (100000)
  --sizes a,b          growth: users in the tables (100000,10000000)
  --shared-buffers s   of PostgreSQL (1GB; growth: 6GB)
  --out folder         where results.json is written (.data/<command>/<date>)
`;

const QUICK = { targets: ['ours', 'go', 'bun', 'hello'], workloads: ['get', 'create', 'list'] };

/** The options of a command line. Ends the process with the usage if it has any other option. */
export function readOptions(command: 'bench' | 'lab -- growth', words: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: words,
      options: {
        quick: { type: 'boolean', default: false },
        targets: { type: 'string' },
        with: { type: 'string', multiple: true, default: [] },
        workloads: { type: 'string' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        connections: { type: 'string', default: '64' },
        users: { type: 'string', default: '100000' },
        sizes: { type: 'string', default: '100000,10000000' },
        'shared-buffers': { type: 'string' },
        out: { type: 'string' },
      },
    });
    const { quick } = values;
    const date = new Date().toISOString().slice(0, 19).replaceAll(':', '-');
    return {
      targets: values.targets?.split(',') ?? (quick ? QUICK.targets : undefined),
      variants: values.with,
      workloads: values.workloads?.split(',') ?? (quick ? QUICK.workloads : undefined),
      rounds: numberOf(values.rounds ?? (quick ? '3' : '5')),
      users: numberOf(values.users),
      sizes: values.sizes.split(',').map(numberOf),
      sharedBuffers: values['shared-buffers'] ?? (command === 'bench' ? '1GB' : '6GB'),
      connections: numberOf(values.connections),
      seconds: numberOf(values.seconds ?? (quick ? '2' : '3')),
      out: values.out ?? join(import.meta.dirname, '../../.data', command.replace('lab -- ', ''), date),
    };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usageOf(command)}`);
    process.exit(1);
  }
}

/** The items with these names, in the order of the list. Ends the process for a name that the list lacks. */
export function chosen<Named extends { readonly name: string }>(
  all: readonly Named[],
  names: readonly string[] | undefined,
): readonly Named[] {
  const unknown = names?.filter((name) => !all.some((one) => one.name === name)) ?? [];
  if (unknown.length > 0) {
    const known = all.map(({ name }) => name).join(', ');
    process.stderr.write(`There is no ${unknown.join(', ')}, only ${known}.\n`);
    process.exit(1);
  }
  return all.filter(({ name }) => names?.includes(name) ?? true);
}

function numberOf(text: string): number {
  const number = Number(text);
  if (number > 0) return number;
  throw new Error(`${text} is not a number above 0`);
}
