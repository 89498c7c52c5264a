/** Text at a place of a picture; `more` are further attributes. */
export function text(x: number, y: number, content: string, more = ''): string {
  const safe = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x}" y="${y}" fill="#222" ${more}>${safe}</text>`;
}

/** A whole picture. */
export function svg(width: number, height: number, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${parts.join('\n')}
</svg>
`;
}
