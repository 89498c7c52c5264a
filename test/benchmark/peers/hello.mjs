// Nothing but node:http, as its documentation shows it: what a request costs that does no work at all.
import { createServer } from 'node:http';
import { settings } from './settings.mjs';

createServer((_request, response) => {
  response.setHeader('Content-Type', 'application/json');
  response.end('{"status":"healthy"}');
}).listen(settings.port, '127.0.0.1');
