/** Does a piece of work so many times, by so many workers at once; each gets its number. */
export async function sideBySide(
  workers: number,
  times: number,
  work: (number: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const toil = async () => {
    while (next < times) {
      const number = next;
      next += 1;
      await work(number);
    }
  };
  await Promise.all(Array.from({ length: workers }, toil));
}
