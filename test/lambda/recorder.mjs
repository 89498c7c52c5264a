// Writes the URL of every module that a process loads into the file that LOADED names.
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const { LOADED } = process.env;

registerHooks({
  load(url, context, next) {
    appendFileSync(LOADED, `${url}\n`);
    return next(url, context);
  },
});
