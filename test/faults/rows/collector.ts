import { setTimeout as sleep } from 'node:timers/promises';
import { readSteadily } from '../../lab/load/load.ts';
import { startOtlpReceiver } from '../../stage/otlp-receiver.ts';
import type { Row } from '../run-row.ts';

/** What a collector can be like: away, hanging, failing. */
const COLLECTORS = ['away', 'hanging', 'failing'] as const;

/** Rounds in which p99 is measured with the service without its collector, and with one that has it. */
const ROUNDS = 20;

/** What it may cost, and by how much two processes alike may differ for as long as they run. */
const RATIO_LIMIT = 1.05 * 1.06;

export const collectorAway: Row = {
  name: 'collector-away',
  promise:
    'The trace collector is away, hangs or fails: every request is served, memory is flat, and p99 is no more than 5 % longer (beyond the 6 % by which two processes alike differ) than with a collector; of 20 rounds, fifteen above that are too many.',
  trials: COLLECTORS.length,
  async run({ startService, openLedger, trials, claim, tried, defer, figures }) {
    const [receiver, wellReceiver] = [await startOtlpReceiver(), await startOtlpReceiver()];
    defer(receiver.stop);
    defer(wellReceiver.stop);
    const traced = (endpoint: string) => ({
      SVC_OTEL_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    });
    // Of all of them, since each finds what those before have written.
    const ledger = openLedger();
    const well = await startService(traced(wellReceiver.endpoint), { ledger });
    for (const mood of COLLECTORS.slice(0, trials)) {
      receiver.answer((response) => {
        if (mood === 'failing') response.writeHead(500).end();
      });
      const endpoint = mood === 'away' ? 'http://127.0.0.1:9' : receiver.endpoint;
      const service = await startService(traced(endpoint), { ledger });
      // Both, so that one is as warm as the other.
      const loads = [service, well].map((one) => one.startLoad(8));
      await sleep(3000);
      const warm = service.memoryGrowth();
      await sleep(12_000);
      await Promise.all(loads.map((load) => load.stop()));
      const grown = service.memoryGrowth() - warm;
      figures.memoryChange = Math.max(figures.memoryChange, grown);
      claim(`every request is served while it is ${mood}`, service.ledger.refusedAfter(0) === 0);
      claim(`memory is flat while it is ${mood}`, grown < 60, grown);
      await service.checkBooks();
      const ratios: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const { p99 } = await readSteadily(service, { seconds: 0.5 });
        ratios.push(p99 / (await readSteadily(well, { seconds: 0.5 })).p99);
      }
      // One round is chance on a machine that is shared; that three of four are above it is not.
      const isAbove = ratios.filter((ratio) => ratio > RATIO_LIMIT).length >= 0.75 * ROUNDS;
      claim(`p99 is no longer while it is ${mood}`, !isAbove, ratios);
      tried();
    }
  },
};
