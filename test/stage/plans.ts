import pg from 'pg';
import type { Statement } from './statements.ts';

/** A node of a plan in EXPLAIN's JSON, with its actual counts. */
type PlanNode = {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
};

/** The plans of statements on this connection: with known values, and as a named statement for all values. */
export function plansOver(client: pg.Client) {
  async function explain(statement: string, parameters: readonly unknown[] = []) {
    const explained = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`;
    const { rows } = await client.query(explained, [...parameters]);
    return costOf(rows[0]['QUERY PLAN'][0].Plan);
  }

  return {
    known: ({ sql, parameters }: Statement) => explain(sql, parameters),
    async named({ sql, parameters }: Statement) {
      const values = parameters.map(literalOf);
      await client.query(`SET plan_cache_mode = force_generic_plan; PREPARE statement AS ${sql}`);
      const cost = await explain(`EXECUTE statement ${values.length > 0 ? `(${values})` : ''}`);
      await client.query('DEALLOCATE statement; RESET plan_cache_mode');
      return cost;
    },
  };
}

function literalOf(value: unknown): string {
  if (value === undefined || value === null) return 'NULL';
  return pg.escapeLiteral(Array.isArray(value) ? `{${value}}` : `${value}`);
}

/** The indexes that a plan uses, the rows that it reads and discards, and the pages of 8 KB that it reads. */
function costOf(plan: PlanNode) {
  const nodes = nodesOf(plan);
  return {
    indexes: nodes.flatMap((node) => node['Index Name'] ?? []),
    wholeTables: nodes.flatMap((node) =>
      node['Node Type'] === 'Seq Scan' ? (node['Relation Name'] ?? []) : [],
    ),
    inVain: nodes.reduce((sum, node) => sum + (node['Rows Removed by Filter'] ?? 0), 0),
    pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
  };
}

function nodesOf(plan: PlanNode): readonly PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}
