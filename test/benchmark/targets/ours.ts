import { join } from 'node:path';
import type { Variables } from '../../../lib/settings/environment.ts';
import { START_COMMAND } from '../../stage/start-command.ts';
import type { Stage } from '../stage/stage.ts';
import type { Target } from './target.ts';

/** How a variant of the service is started: settings and options of Node's beside the usual ones, or another checkout. */
type Start = { readonly variables?: Variables; readonly options?: string; readonly folder?: string };

/** The built host, started as `npm start` does, with V8's flags as they stand there. */
const variant = (
  name: string,
  title: string,
  startOn: (stage: Stage) => Start,
  workloads?: readonly string[],
): Target => ({
  name,
  title,
  ...(workloads && { workloads }),
  async install(stage) {
    const { variables, options = '', folder = join(stage.main, '../../..') } = startOn(stage);
    // If a flag is given twice, the later one applies.
    const command = START_COMMAND.replace(' dist/host', ` ${options} dist/host`);
    const usual = { PATH: process.env.PATH, SVC_SHUTDOWN_DRAIN_TIMEOUT: '1' };
    return (database, port) => ({
      command: '/bin/sh',
      options: ['-c', command],
      folder,
      variables: { ...usual, ...stage.variablesOf(database), ...variables, SVC_PORT: String(port) },
    });
  },
});

const traced = (name: string, title: string, sampler: Variables) =>
  variant(
    name,
    title,
    ({ collector }) => ({
      variables: { ...sampler, SVC_OTEL_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    }),
    ['get', 'create', 'update', 'list'],
  );

/** The service itself, as it is and with what can be switched on; the first is what the others are compared with. */
export const ours: readonly Target[] = [
  variant('ours', 'ours', () => ({})),
  traced('ours-traced-1', 'ours, 1 % traced', {
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.01',
  }),
  traced('ours-traced-all', 'ours, all traced', { OTEL_TRACES_SAMPLER: 'always_on' }),
];

/**
 * The service with other settings and options of Node's, written as in a shell: `SVC_POSTGRES_POOL_SIZE=4 --no-opt`. An
 * absolute path is the folder of another checkout, whose build is run instead.
 */
export function oursWith(words: string, index: number): Target {
  const [settings = [], options = [], folders = []] = [/^\w+=/, /^-/, /^\//].map((form) =>
    words.split(' ').filter((word) => form.test(word)),
  );
  const variables = Object.fromEntries(settings.map((setting) => setting.split(/=(.*)/)));
  const [folder] = folders;
  return variant(`ours-with-${index + 1}`, `ours, ${words}`, () => ({
    ...{ variables, options: options.join(' ') },
    ...(folder && { folder }),
  }));
}
