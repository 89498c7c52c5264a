import type { Workload } from './workload.ts';

/** The probe: neither token nor statement. */
export const health: Workload = {
  name: 'health',
  title: '/health',
  status: 200,
  requests: () => () => ({ method: 'GET', target: '/health' }),
};
