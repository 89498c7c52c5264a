// On SIGUSR2 the clock of the process advances by ten minutes, as it does while AWS Lambda keeps the process frozen.
const TEN_MINUTES = 600_000;
const now = Date.now;
let frozenFor = 0;

Date.now = () => now() + frozenFor;
process.on('SIGUSR2', () => {
  frozenFor += TEN_MINUTES;
});
