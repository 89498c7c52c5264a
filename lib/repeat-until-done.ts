/** Repeats an attempt until it resolves with a result. The time limit of the request's statements ends the repetition. */
export function repeatUntilDone<Result>(attempt: () => Promise<Result | undefined>): Promise<Result> {
  return attempt().then((result) => (result === undefined ? repeatUntilDone(attempt) : result));
}
