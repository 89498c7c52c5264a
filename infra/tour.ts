import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endpoints } from '../handlers/index.ts';

// Draws a request's way for the README, from the names in the code; with --check it only compares.
const root = join(import.meta.dirname, '..');
const file = join(root, 'infra/tour.svg');

/** What each check refuses a request with; one that is not here is an error. */
const REFUSALS: Readonly<Record<string, string>> = {
  pathParameters: '400',
  authenticate: '401 403',
  demandPrecondition: '428',
  demandJson: '415',
  receiveBody: '413',
  validate: '422',
};

const drawing = draw();
if (!process.argv.includes('--check')) writeFileSync(file, drawing);
else if (readFileSync(file, 'utf8') !== drawing) {
  process.stderr.write('infra/tour.svg is not current: run node infra/tour.ts\n');
  process.exitCode = 1;
}

/** The functions that are called in a list of the source, in its order. */
function calledIn(path: string, list: RegExp): readonly string[] {
  const [, text = ''] = list.exec(readFileSync(join(root, path), 'utf8')) ?? [];
  const names = [...text.matchAll(/(?<![.\w])([a-z]\w+)\(/g)].map(([, name = '']) => name);
  if (names.length === 0) throw new Error(`${path} has no such list any more`);
  return [...new Set(names)];
}

function draw(): string {
  const around = calledIn('lib/serve.ts', /const outer = \[(.*?)\];/s);
  const checks = calledIn('lib/endpoint.ts', /function checksOf\(.*?return \[(.*?)\n {2}\];/s);
  const unknown = checks.find((name) => REFUSALS[name] === undefined);
  if (unknown) throw new Error(`what does ${unknown} refuse with?`);
  const handlers = endpoints
    .filter(({ route }) => route.kind === 'operation')
    .map(({ route }) => route.operationId);
  const height = 76 + 34 * Math.max(checks.length, handlers.length);
  const columns = [
    column(20, 'Ways in', [
      ['AWS Lambda', 'lambda.ts'],
      ['HTTP', 'server.ts'],
      ['door', '503'],
      ['router', '404 405'],
    ]),
    column(
      216,
      'Around each: lib/serve.ts',
      around.map((name) => [name]),
    ),
    column(
      412,
      'Checks: lib/endpoint.ts',
      checks.map((name) => [name, REFUSALS[name]]),
    ),
    column(
      608,
      'Answers: handlers/',
      handlers.map((name) => [name]),
    ),
    column(804, 'One statement each', [
      ['statements', '503'],
      ['no such row', '404'],
      ['unique index', '409'],
      ['row version', '412'],
      ['changes', 'same statement'],
      ['PostgreSQL'],
    ]),
  ];
  const arrows = [0, 1, 2, 3].map((index) => arrow(196 + 196 * index));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 ${height}" font-family="system-ui, sans-serif" font-size="12" role="img">
<title>The way of a request: ${checks.join(', ')}, then one of ${handlers.length} answers, then one statement</title>
<rect width="1000" height="${height}" rx="12" fill="#fbfaf7" stroke="#d9d4c7"/>
${[...columns, ...arrows].join('\n')}
</svg>
`;
}

function column(x: number, title: string, boxes: readonly (readonly (string | undefined)[])[]): string {
  const drawn = boxes.map(([name = '', note], index) => box(x, 62 + 34 * index, name, note));
  return [`<text x="${x}" y="40" font-weight="600" fill="#3d3a33">${title}</text>`, ...drawn].join('\n');
}

function box(x: number, y: number, name: string, note = ''): string {
  const isRefusal = /^\d/.test(note);
  const fill = isRefusal ? '#b3402a' : '#7a7465';
  return `<rect x="${x}" y="${y}" width="172" height="26" rx="6" fill="#ffffff" stroke="#b9b29f"/>
<text x="${x + 9}" y="${y + 17}" fill="#22201b">${name}</text>
<text x="${x + 163}" y="${y + 17}" text-anchor="end" font-size="11" fill="${fill}">${note}</text>`;
}

function arrow(x: number): string {
  return `<path d="M${x} 75h12m-5 -5l5 5l-5 5" fill="none" stroke="#3d3a33" stroke-width="1.5"/>`;
}
