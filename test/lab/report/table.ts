/** A table with columns of equal width. The first column is aligned to the left, the others to the right. */
export function aligned(lines: readonly (readonly string[])[]): string {
  const padded = (text: string, column: number) => {
    const width = Math.max(...lines.map((line) => line[column]?.length ?? 0));
    return column === 0 ? text.padEnd(width) : text.padStart(width);
  };
  return lines.map((line) => line.map(padded).join('  ').trimEnd()).join('\n');
}

/** By the titles of the columns: the text of a row's cell. */
type Columns<Row> = Readonly<Record<string, (row: Row) => string | number>>;

export function tableOf<Row>(columns: Columns<Row>, rows: readonly Row[]): string {
  const cells = rows.map((row) => Object.values(columns).map((cell) => String(cell(row))));
  return aligned([Object.keys(columns), ...cells]);
}

/** A table in Markdown whose rows come one by one. */
export function markdownTable<Row>(columns: Columns<Row>) {
  const lineOf = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;
  const titles = Object.keys(columns);
  return {
    head: `${lineOf(titles)}\n${lineOf(titles.map(() => '---'))}`,
    line: (row: Row) => lineOf(Object.values(columns).map((cell) => cell(row))),
  };
}
