import { onTestFinished, vi } from 'vitest';

/**
 * Until the end of this test, time passes for admission only with `vi.advanceTimersByTime`, so that a busy machine
 * refuses the same requests as an idle one. Call it before admission starts. Sockets and PostgreSQL are not simulated.
 */
export function simulateAdmissionTime(): void {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
}
