import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROLE_SETTINGS } from '../../lib/settings/role-settings.ts';
import { keepFile, table } from './generated-file.ts';

/** The pages that set up a role, below `infra/`. */
const PAGES = ['postgresql/README.md', 'postgresql/citus.md', 'lambda/README.md'];

/** The settings of a role in SQL, and their table. */
const STATEMENTS = /(?:^ *ALTER ROLE \S+ SET (?!search_path|jit)\w+ = .*;\n)+/m;
const TABLE = /^\| setting \| without it \|\n(?:\|.*\n)+/m;

const settings = Object.entries(ROLE_SETTINGS);
const rows = settings.map(([name, { without }]) => [`\`${name}\``, without]);

for (const page of PAGES) {
  const text = readFileSync(join(import.meta.dirname, '..', page), 'utf8');
  const written = text
    .replace(STATEMENTS, (before) => {
      const [head = ''] = /^ *ALTER ROLE \S+ SET /.exec(before) ?? [];
      return settings
        .map(
          ([name, { value }]) =>
            `${head}${name} = ${/^\w+$/.test(value) && Number.isNaN(parseInt(value, 10)) ? value : `'${value}'`};\n`,
        )
        .join('');
    })
    .replace(TABLE, `${table(['setting', 'without it'], rows)}\n`);
  keepFile(page, written);
}
