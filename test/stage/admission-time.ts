import { onTestFinished, vi } from 'vitest';

/**
 * Until the end of this test, `performance.now` and intervals of this process advance only with `vi.advanceTimersByTime`. A
 * busy machine then refuses the same requests as an idle one. Timeouts, `Date`, sockets and PostgreSQL stay real. Call it
 * before the service starts.
 */
export function simulateAdmissionTime(): void {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
}
