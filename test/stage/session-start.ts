import { onTestFinished } from 'vitest';
import { AUTHENTICATION_OK, messagesThrough } from './postgres-messages.ts';
import type { TcpProxy } from './proxy.ts';

/** Until the test ends, new sessions through this proxy get `bytes` in place of the message that accepts them. */
export function answerAtStart(proxy: TcpProxy, bytes: Buffer): void {
  proxy.answersThrough(() =>
    messagesThrough((_type, message) => (message.equals(AUTHENTICATION_OK) ? bytes : message)),
  );
  onTestFinished(() => proxy.pass());
}
