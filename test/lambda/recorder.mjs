// Writes the URL of every module that a process loads to standard error.
import { writeSync } from 'node:fs';
import { registerHooks } from 'node:module';

registerHooks({
  load(url, context, next) {
    writeSync(2, `${url}\n`);
    return next(url, context);
  },
});
