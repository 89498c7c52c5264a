import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { freePort } from '../../host/development/free-port.ts';
import { fromDebian } from '../lab/stage/packages.ts';
import { until } from '../stage/until.ts';

const run = promisify(execFile);

type Sample = {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
};

/** The path of a program of Debian's package. */
const programOf = async (name: string) =>
  join(await fromDebian(['prometheus'], { alone: true }), 'root/usr/bin', name);

/** Runs promtool and returns its output. Throws the output if promtool reports a fault. */
export async function promtool(...words: readonly string[]): Promise<string> {
  const { stdout } = await run(await programOf('promtool'), words).catch(({ stdout, stderr }) => {
    throw new Error(stdout + stderr);
  });
  return stdout;
}

/** Starts a Prometheus that scrapes these ports of 127.0.0.1 every second, and evaluates the rules twice per second. */
export async function startPrometheus(ports: readonly number[], rules: string) {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-prometheus-'));
  const port = await freePort();
  writeFileSync(join(folder, 'rules.yaml'), rules);
  writeFileSync(join(folder, 'prometheus.yaml'), configuration(ports));
  const options = [
    ...['--log.level=error', `--web.listen-address=127.0.0.1:${port}`],
    ...[`--config.file=${join(folder, 'prometheus.yaml')}`, `--storage.tsdb.path=${join(folder, 'data')}`],
  ];
  const child = spawn(await programOf('prometheus'), options, { stdio: ['ignore', 'ignore', 'inherit'] });
  const kill = () => void child.kill('SIGKILL');
  process.on('exit', kill);
  const url = `http://127.0.0.1:${port}`;
  const isReady = () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('Prometheus is ready', isReady, { seconds: 30 });

  const query = async (expr: string): Promise<readonly Sample[]> => {
    const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`);
    const { status, data, error } = (await response.json()) as never as {
      status: string;
      error?: string;
      data: { result: readonly Sample[] };
    };
    if (status !== 'success') throw new Error(`${expr}: ${error}`);
    return data.result;
  };
  const isFiring = async (alarm: string) =>
    (await query(`ALERTS{alertname="${alarm}",alertstate="firing"}`)).length > 0;

  return {
    query,
    /** The alarms that fire now. */
    firing: async () => (await query('ALERTS{alertstate="firing"}')).map(({ metric }) => metric.alertname),
    untilFiring: (alarm: string) =>
      until(`${alarm} fires`, () => isFiring(alarm), { seconds: 40, every: 200 }),
    untilClear: (alarm: string) =>
      until(`${alarm} clears`, async () => !(await isFiring(alarm)), { seconds: 40, every: 200 }),
    async stop() {
      child.kill('SIGTERM');
      await once(child, 'exit');
      process.off('exit', kill);
      rmSync(folder, { recursive: true });
    },
  };
}

const configuration = (ports: readonly number[]) =>
  stringify({
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '500ms' },
    rule_files: ['rules.yaml'],
    scrape_configs: [
      {
        job_name: 'user-management-service',
        static_configs: [{ targets: ports.map((port) => `127.0.0.1:${port}`) }],
      },
    ],
  });
