export type Progress = (what: string) => void;

/** Writes a line each to standard error. */
export function startProgress(): Progress {
  const begun = performance.now();
  return (what) =>
    void process.stderr.write(`${Math.round((performance.now() - begun) / 1000)} s: ${what}\n`);
}
