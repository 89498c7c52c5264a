import { batch } from './batch.ts';
import { byEmail } from './by-email.ts';
import { changesAtHead } from './changes.ts';
import { create, createAlone } from './create.ts';
import { freshToken } from './fresh-token.ts';
import { get, getAtHalfLoad } from './get.ts';
import { health } from './health.ts';
import { deepList, list } from './list.ts';
import { mix } from './mix.ts';
import { update } from './update.ts';
import type { Workload } from './workload.ts';

/** All kinds of load, in the order they are run. One with a pace stands after the one it is a part of. */
export const workloads: readonly Workload[] = [
  health,
  get,
  getAtHalfLoad,
  freshToken,
  create,
  createAlone,
  update,
  batch,
  list,
  deepList,
  byEmail,
  mix,
  changesAtHead,
];
