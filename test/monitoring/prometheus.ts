import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { freePort } from '../../host/development/free-port.ts';
import { fromDebian } from '../lab/stage/packages.ts';
import { blockOf } from '../stage/page-blocks.ts';
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

/** Starts a Prometheus that scrapes a port of 127.0.0.1 every second, and evaluates the rules twice per second. */
export async function startPrometheus(scraped: number, rules: string) {
  const folder = mkdtempDisposableSync(join(tmpdir(), 'user-management-prometheus-'));
  const fileOf = (name: string) => join(folder.path, name);
  const port = await freePort();
  writeFileSync(fileOf('rules.yaml'), rules);
  writeFileSync(fileOf('prometheus.yaml'), configuration(scraped));
  const options = [
    ...['--log.level=error', `--web.listen-address=127.0.0.1:${port}`],
    ...[`--config.file=${fileOf('prometheus.yaml')}`, `--storage.tsdb.path=${fileOf('data')}`],
  ];
  const child = spawn(await programOf('prometheus'), options, { stdio: ['ignore', 'ignore', 'inherit'] });
  const kill = () => void child.kill('SIGKILL');
  process.on('exit', kill);
  const url = `http://127.0.0.1:${port}`;
  const isReady = async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok;
  await until('Prometheus is ready', isReady);

  const query = async (expr: string): Promise<readonly Sample[]> => {
    const response = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`);
    if (!response.ok) throw new Error(`${expr}: ${await response.text()}`);
    const { data } = (await response.json()) as { data: { result: readonly Sample[] } };
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
      folder.remove();
    },
  };
}

/** The configuration of the page, for this port and these rules, with short intervals. */
const configuration = (port: number) =>
  stringify({
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '500ms' },
    ...parse(
      blockOf('infra/observability/README.md', 'Metrics')
        .replace('users.internal:9464', `127.0.0.1:${port}`)
        .replace('[alerts.yaml]', '[rules.yaml]'),
    ),
  });
