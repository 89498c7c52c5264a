// Nothing but node:http, as its documentation shows it: what a request costs that does no work at all.
import { createServer } from 'node:http';

createServer((_request, response) => {
  response.setHeader('Content-Type', 'application/json');
  response.end('{"status":"healthy"}');
}).listen(Number(process.env.PORT), '127.0.0.1');
