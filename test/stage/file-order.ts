import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The sentences about roles, statuses and headers, and files that run beside them and need no service. A file that waits
 * for 76 seconds.
 */
const FIRST = [
  'http/responses.test.ts',
  'http/rules/rules.test.ts',
  'http/openapi-rules.test.ts',
  'client/relay-failures.test.ts',
];

/** Starts the sentences before all other files, so that their failures are the first ones, and what takes the longest. */
export class FileOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = FIRST.findIndex((file) => moduleId.endsWith(file));
      return index < 0 ? FIRST.length : index;
    };
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other));
  }
}
