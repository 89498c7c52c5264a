/** Tells what is being done. */
export type Progress = (what: string) => void;

/** Writes to standard error: on a terminal over the line before, else a line each. */
export function startProgress(): Progress {
  const begun = performance.now();
  const { stderr } = process;
  return (what) => {
    const seconds = Math.round((performance.now() - begun) / 1000);
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
    stderr.write(stderr.isTTY ? `\r\x1b[K${time} ${what}` : `${time} ${what}\n`);
  };
}

/** Tells what nobody should overlook. */
export function warn(what: string): void {
  const { stderr } = process;
  stderr.write(stderr.isTTY ? `\r\x1b[K\x1b[33m${what}\x1b[0m\n` : `!! ${what}\n`);
}
