import type { Random } from '../../lab/load/random.ts';
import type { ServiceUnderFault, Stage } from '../../lab/stage/stage.ts';
import type { startOtlpReceiver } from '../../stage/otlp-receiver.ts';
import type { TcpProxy } from '../../stage/proxy.ts';

/** What a fault may break while a load goes on, all of it around the one service. */
export type Surroundings = Pick<Stage, 'postgres' | 'issuer' | 'claim' | 'token'> & {
  readonly service: ServiceUnderFault;
  readonly random: Random;
  /** Stands between the service and PostgreSQL. */
  readonly proxy: TcpProxy;
  readonly collector: Awaited<ReturnType<typeof startOtlpReceiver>>;
  /** Who reads the log. */
  readonly logReader: { isStalled: boolean };
};

/** Faults by name. Each has ended, and has been undone, when its promise resolves: within 25 seconds. */
export type PassingFaults = Readonly<Record<string, (surroundings: Surroundings) => Promise<void>>>;

export type PassingFault = { readonly name: string; readonly bringAbout: PassingFaults[string] };
