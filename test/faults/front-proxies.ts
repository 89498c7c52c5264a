import { startFront } from '../lab/stage/front.ts';

const startHaproxy = (to: string, options: string) =>
  startFront(
    'haproxy',
    (listenOn) => `
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
  );

const startNginx = (to: string, buffering: 'on' | 'off') =>
  startFront(
    'nginx',
    (listenOn, folder) => `
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
  );

/** What operators put in front of the service: each starts a proxy to a host and port. */
export const FRONT_PROXIES = {
  'haproxy, strict': (to: string) => startHaproxy(to, ''),
  'haproxy, lenient': (to: string) => startHaproxy(to, 'option accept-invalid-http-request'),
  'nginx, buffered': (to: string) => startNginx(to, 'on'),
  'nginx, not buffered': (to: string) => startNginx(to, 'off'),
};
