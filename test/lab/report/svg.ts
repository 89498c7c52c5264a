/** Text at a place of a picture; `more` are further attributes. */
export function text(x: number, y: number, content: string, more = ''): string {
  return `<text x="${x}" y="${y}" fill="#222" ${more}>${safe(content)}</text>`;
}

/** A whole picture, with its title above. */
export function svg(width: number, height: number, title: string, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<title>${safe(title)}</title>
<rect width="100%" height="100%" fill="#fff"/>
${[text(10, 20, title, 'font-weight="bold" font-size="15"'), ...parts].join('\n')}
</svg>
`;
}

function safe(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
