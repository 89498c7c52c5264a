import type { ClientConfig } from 'pg';
import { Client } from './client.ts';

/** A client that knows whether its server takes writes: PostgreSQL 14 tells at the beginning, and when that changes. */
export class ReportingClient extends Client {
  readonly #reported = new Map<string, string>();

  constructor(config: ClientConfig) {
    super(config);
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      this.#reported.set(parameterName, parameterValue);
    });
  }

  /** Undefined where the server, or a pooler before it, does not tell. */
  get takesWrites(): boolean | undefined {
    const [isStandby, isReadOnly] = ['in_hot_standby', 'default_transaction_read_only'].map((name) =>
      this.#reported.get(name),
    );
    if (isStandby === 'on' || isReadOnly === 'on') return false;
    return isStandby === undefined || isReadOnly === undefined ? undefined : true;
  }

  /** Whenever PostgreSQL tells something of it. */
  onWritesChange(listener: () => void): void {
    this.connection.on('parameterStatus', ({ parameterName }) => {
      if (/^(in_hot_standby|default_transaction_read_only)$/.test(parameterName)) listener();
    });
  }
}
