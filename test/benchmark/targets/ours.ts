import { join } from 'node:path';
import type { Variables } from '../../../lib/settings/settings.ts';
import { START_COMMAND } from '../../stage/start-command.ts';
import type { Stage } from '../stage/stage.ts';
import type { Program, Target } from './target.ts';

/** The built host, started as `npm start` does, with V8's flags as they stand there, and more options of Node's. */
function programOf(stage: Stage, variables: Variables, options = '', folder?: string): Program {
  return {
    command: '/bin/sh',
    // If a flag is given twice, the later one applies.
    options: ['-c', START_COMMAND.replace(' dist/host', ` ${options} dist/host`)],
    folder: folder ?? join(stage.main, '../../..'),
    variables: { PATH: process.env.PATH, SVC_SHUTDOWN_DRAIN_TIMEOUT: '1', ...variables },
  };
}

const variant = (
  name: string,
  title: string,
  workloads: readonly string[] | undefined,
  more: (stage: Stage) => Variables,
): Target => ({
  name,
  title,
  ...(workloads && { workloads }),
  install: async (stage) => (database, port) =>
    programOf(stage, { ...stage.variablesOf(database), ...more(stage), SVC_PORT: String(port) }),
});

const traced = (sampler: Variables) => (stage: Stage) => ({
  ...sampler,
  SVC_OTEL_ENABLED: 'true',
  OTEL_EXPORTER_OTLP_ENDPOINT: stage.collector.url,
});

const TRACED = ['get', 'create', 'update', 'list'];

/** The service itself, as it is and with what can be switched on; the first is what the others are compared with. */
export const ours: readonly Target[] = [
  variant('ours', 'ours', undefined, () => ({})),
  variant(
    'ours-traced-1',
    'ours, 1 % traced',
    TRACED,
    traced({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' }),
  ),
  variant('ours-traced-all', 'ours, all traced', TRACED, traced({ OTEL_TRACES_SAMPLER: 'always_on' })),
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
  return {
    name: `ours-with-${index + 1}`,
    title: `ours, ${words}`,
    install: async (stage) => (database, port) =>
      programOf(
        stage,
        { ...stage.variablesOf(database), ...variables, SVC_PORT: String(port) },
        options.join(' '),
        folders[0],
      ),
  };
}
