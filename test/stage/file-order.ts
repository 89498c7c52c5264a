import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The sentences about roles, statuses and headers, and files that run beside them and need no service. */
const SENTENCES = ['http/responses.test.ts', 'http/rules/rules.test.ts', 'http/openapi-rules.test.ts'];

/** It waits for 76 seconds. */
const LONGEST = 'client/relay-failures.test.ts';

const FIRST = [...SENTENCES, LONGEST];

/**
 * Starts the sentences before all other files, so that their failures are the first ones. The longest file follows, because
 * the run would end with it.
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
