import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../host/development/free-port.ts';
import { isListening } from '../stage/listening.ts';
import { until } from '../stage/until.ts';

/** The configuration of a proxy that listens on one port and passes on to another, and how it is run. */
type FrontProxy = {
  readonly command: (file: string, folder: string) => readonly [program: string, ...options: string[]];
  readonly configuration: (listenOn: number, to: string, folder: string) => string;
};

const haproxy = (options: string): FrontProxy => ({
  command: (file) => ['haproxy', '-db', '-f', file],
  configuration: (listenOn, to) => `
defaults
  mode http
  timeout connect 2s
  timeout client 5s
  timeout server 5s
  ${options}
listen front
  bind 127.0.0.1:${listenOn}
  http-reuse always
  server service ${to}
`,
});

const nginx = (buffering: 'on' | 'off'): FrontProxy => ({
  command: (file, folder) => ['nginx', '-p', folder, '-e', join(folder, 'error.log'), '-c', file],
  configuration: (listenOn, to, folder) => `
daemon off;
pid ${folder}/pid;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream service { server ${to}; keepalive 8; }
  server {
    listen 127.0.0.1:${listenOn};
    location / {
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_request_buffering ${buffering};
    }
  }
}
`,
});

/** What operators put in front of the service. */
export const FRONT_PROXIES: Readonly<Record<string, FrontProxy>> = {
  'haproxy, strict': haproxy(''),
  'haproxy, lenient': haproxy('option accept-invalid-http-request'),
  'nginx, buffered': nginx('on'),
  'nginx, not buffered': nginx('off'),
};

/** Starts one of them in front of the service at `url`. */
export async function startFrontProxy({ command, configuration }: FrontProxy, url: string) {
  const folder = await mkdtemp(join(tmpdir(), 'user-management-front-'));
  // It may run as another user.
  await chmod(folder, 0o777);
  const file = join(folder, 'configuration');
  const port = await freePort();
  await writeFile(file, configuration(port, new URL(url).host, folder));
  const [program, ...options] = command(file, folder);
  const child = spawn(program, options, { stdio: 'ignore' });
  await once(child, 'spawn').catch((error) => {
    throw new Error(
      `${error}; Debian has it as a package: apt-get install --no-install-recommends ${program}`,
    );
  });
  await until(`${program} listens`, () => isListening(port));
  return {
    url: `http://127.0.0.1:${port}`,
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      await once(child, 'exit');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
