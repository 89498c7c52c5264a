/** A prefix that runs a command in a terminal. The programs of util-linux and BSD differ. */
export const TERMINAL: readonly string[] =
  process.platform === 'darwin'
    ? ['script', '-q', '/dev/null']
    : ['sh', '-c', 'exec script --quiet --flush --command "$*" /dev/null', 'sh'];
