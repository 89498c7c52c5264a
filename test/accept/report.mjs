const COLOURS = { held: 32, failed: 31, skipped: 33 };
const MARKS = { held: '✓', failed: '✗', skipped: '–' };

/**
 * A readable report, written while the checks run: groups of checks with their results. `counts` has the results so
 * far.
 */
export function createReport(write, { isColoured = false } = {}) {
  const begun = performance.now();
  const counts = { held: 0, failed: 0, skipped: 0 };
  const failures = [];
  let group = '';

  const mark = (outcome) =>
    isColoured ? `\x1b[${COLOURS[outcome]}m${MARKS[outcome]}\x1b[0m` : MARKS[outcome];

  function tell(outcome, title, remark) {
    counts[outcome] += 1;
    write(`  ${mark(outcome)} ${title}${outcome === 'skipped' ? `: skipped, ${remark}` : ''}\n`);
  }

  return {
    counts,
    /** The titles of the failed checks. */
    failures,
    line: (text) => write(`${text}\n`),
    group(title) {
      group = title;
      write(`\n${title}\n`);
    },
    held: (title) => tell('held', title),
    skipped: (title, reason) => tell('skipped', title, reason),
    failed(title, reasons) {
      failures.push(`${group}: ${title}`);
      tell('failed', title);
      for (const reason of reasons) write(`      ${reason}\n`);
    },
    close(verdict) {
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      if (failures.length > 0) write(`\nDid not hold:\n${failures.map((name) => `  ${name}\n`).join('')}`);
      write(
        `\n${counts.held} held, ${counts.failed} did not, ${counts.skipped} skipped, in ${seconds} s. ${verdict}\n`,
      );
    },
  };
}
