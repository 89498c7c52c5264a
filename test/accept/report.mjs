const MARKS = { held: '✓', failed: '✗', skipped: '–' };

/**
 * A readable report, written while the checks run: groups of checks with their results. `counts` has the results so
 * far.
 */
export function createReport(write) {
  const begun = performance.now();
  const counts = { held: 0, failed: 0, skipped: 0 };

  function add(outcome, title, remark = '') {
    counts[outcome] += 1;
    write(`  ${MARKS[outcome]} ${title}${remark}\n`);
  }

  return {
    counts,
    line: (text) => write(`${text}\n`),
    held: (title) => add('held', title),
    skipped: (title, reason) => add('skipped', title, `: skipped, ${reason}`),
    failed: (title, reasons) => add('failed', title, reasons.map((reason) => `\n      ${reason}`).join('')),
    /** Runs groups of checks, by their titles. */
    async run(groups, known) {
      for (const [title, group] of Object.entries(groups)) {
        write(`\n${title}\n`);
        await group(known);
      }
    },
    close(verdict) {
      const { held, failed, skipped } = counts;
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      write(`\n${held} held, ${failed} did not, ${skipped} skipped, in ${seconds} s. ${verdict}\n`);
    },
  };
}
