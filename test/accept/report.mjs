const MARKS = { held: '✓', failed: '✗', skipped: '–' };

/**
 * A readable report, written while the checks run: groups of checks with their results. `counts` has the results so
 * far.
 */
export function createReport(write) {
  const begun = performance.now();
  const counts = { held: 0, failed: 0, skipped: 0 };

  function tell(outcome, title, remark) {
    counts[outcome] += 1;
    write(`  ${MARKS[outcome]} ${title}${outcome === 'skipped' ? `: skipped, ${remark}` : ''}\n`);
  }

  return {
    counts,
    line: (text) => write(`${text}\n`),
    group: (title) => write(`\n${title}\n`),
    held: (title) => tell('held', title),
    skipped: (title, reason) => tell('skipped', title, reason),
    failed(title, reasons) {
      tell('failed', title);
      for (const reason of reasons) write(`      ${reason}\n`);
    },
    close(verdict) {
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      write(
        `\n${counts.held} held, ${counts.failed} did not, ${counts.skipped} skipped, in ${seconds} s. ${verdict}\n`,
      );
    },
  };
}
