import { get } from './get.ts';
import { updateOfAny } from './update.ts';
import type { Workload } from './workload.ts';

/** One request in this many is an update. */
const EVERY = 5;

/** 80 % reads by id, 20 % updates. */
export const mix: Workload = {
  name: 'mix',
  title: 'mix: 80 % get, 20 % update',
  status: 200,
  writes: true,
  varying: ['updated_at', 'full_name'],
  requests(material) {
    const [nextGet, nextUpdate] = [get.requests(material), updateOfAny(material)];
    let sent = 0;
    return () => {
      sent += 1;
      return sent % EVERY === 0 ? nextUpdate() : nextGet();
    };
  },
};
