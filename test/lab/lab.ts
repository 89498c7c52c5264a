import { runChosen } from '../stage/run-chosen.ts';

// npm run lab -- <name>: experiments, each of which keeps or breaks a promise, or measures what a promise rests on.
runChosen('lab', {
  faults: {
    proves: 'Whatever fails around the service, each row of test/faults/README.md keeps its promise.',
    takes: 'an hour, or what -- --minutes 5 names',
    needs: 'Linux, root, haproxy and nginx',
    command: 'exec node test/faults/faults.ts',
  },
  soak: {
    proves:
      'After an hour of mixed load with a fault every half minute, nothing is left and memory is as before.',
    takes: '80 minutes, or 20 more than -- --minutes 10 names',
    needs: 'Linux and the npm registry',
    command: 'exec node test/soak/soak.ts',
  },
  overload: {
    proves: 'With up to 10 times its capacity, the service continues to serve at 80 % of its peak or more.',
    takes: '10 minutes',
    needs: 'Linux and a quiet machine',
    command: 'exec node test/overload/overload.ts',
  },
  rolling: {
    proves: 'Restarts of two instances behind a load balancer lose no request.',
    takes: 'a minute',
    needs: 'haproxy',
    command: 'exec node test/rolling/rolling.ts',
  },
  failover: {
    proves: 'A failover of PostgreSQL loses no acknowledged write.',
    takes: '8 minutes',
    needs: 'Debian, its postgresql, and haproxy',
    command: 'exec node test/failover/failover.ts',
  },
  growth: {
    proves: 'Each operation costs as much with 10,000,000 users as with 100,000.',
    takes: 'an hour',
    needs: 'Linux and 12 GB of disk',
    command: 'exec node test/benchmark/growth.ts',
  },
  instances: {
    proves: 'Two instances on two cores serve more than one instance does.',
    takes: 'a few minutes',
    needs: 'Linux, four cores and taskset',
    command: 'exec node test/benchmark/instances.ts',
  },
  profile: {
    proves: 'Shows where the processor time of each kind of request goes.',
    takes: 'a few minutes',
    command: 'exec node test/benchmark/profile.ts',
  },
  model: {
    proves: 'The models of the feed and of the keys hold, find planted faults, and accept real histories.',
    takes:
      'a minute for -- small, faults, windows and histories each; large and all-histories an hour or more',
    needs: 'spin and gcc',
    command: 'exec node test/model/model.ts',
  },
  import: {
    proves: 'Measures how fast the command users imports and exports users, and its memory.',
    takes: 'a few minutes',
    needs: 'the npm registry, and a quiet machine',
    command: 'node infra/client/prepare.mjs && exec node test/client/import-export.ts',
  },
  fuzz: {
    proves:
      'Requests made from infra/openapi.json, good and bad, alone and in sequences, are answered as the document says.',
    takes:
      '10 minutes, or less with -- --cases 10000; -- --seed <n> repeats a run, and -- --only <title> a part of it',
    command: 'exec node test/fuzz/lab.ts',
  },
  guard: {
    proves:
      'Counts what each kind of request costs, and writes it to test/benchmark/guard/figures.json. npm test refuses 10 % more.',
    takes: 'half a minute',
    command: 'GUARD_WRITES=true exec vitest run test/benchmark/guard',
  },
});
