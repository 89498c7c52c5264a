/** The context of a test, or `{ onTestFinished: afterAll }` for a whole file. */
export type Ending = { onTestFinished(stop: () => Promise<void>): void };
