/** A table with columns of equal width. The first column is aligned to the left, the others to the right. */
export function aligned(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  return lines
    .map((line) =>
      line
        .map((text, column) =>
          column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** A table of rows. Each column has its title and the text of a row's cell. */
export function tableOf<Row>(
  columns: Readonly<Record<string, (row: Row) => string | number>>,
  rows: readonly Row[],
): string {
  const cells = rows.map((row) => Object.values(columns).map((cell) => String(cell(row))));
  return aligned([Object.keys(columns), ...cells]);
}
