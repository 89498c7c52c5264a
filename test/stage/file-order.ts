import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The sentences about roles, statuses and headers, and files that run beside them and need no service. */
const SENTENCES = ['http/responses.test.ts', 'http/rules/rules.test.ts', 'http/openapi-rules.test.ts'];

/** They wait for 20 to 76 seconds. */
const LONGEST = [
  'client/relay-failures.test.ts',
  'engine/used-sessions.test.ts',
  'lifecycle/launch.test.ts',
  'observability/metrics.test.ts',
  'engine/lagging-standby.test.ts',
  'engine/page-statements.test.ts',
  'engine/malformed-messages.test.ts',
  'observability/otel-settings.test.ts',
];

const FIRST = [...SENTENCES, ...LONGEST];

/**
 * Starts the sentences before all other files, so that their failures are the first ones. The longest files follow, because
 * the run would end with them.
 */
export class FileOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = FIRST.findIndex((file) => moduleId.endsWith(file));
      return index < 0 ? FIRST.length : index;
    };
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other));
  }
}
