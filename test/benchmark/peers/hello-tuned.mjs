// The same with the two settings of node:http that the service uses: one flat array of headers, and no promise of a
// body for requests without one.
import { createServer } from 'node:http';
import { settings } from './settings.mjs';

const BODY = '{"status":"healthy"}';
const HEADERS = ['Content-Type', 'application/json', 'Content-Length', String(BODY.length)];

createServer({ optimizeEmptyRequests: true }, (_request, response) => {
  response.writeHead(200, HEADERS).end(BODY);
}).listen(settings.port, '127.0.0.1');
