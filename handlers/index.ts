import type { Endpoint } from '../lib/endpoint/endpoint.ts';
import { health } from './probes/health.ts';
import { ready } from './probes/ready.ts';
import { listChanges } from './users/changes.ts';
import { createUser } from './users/create.ts';
import { createUsers } from './users/create-batch.ts';
import { deleteUser } from './users/delete.ts';
import { getUser } from './users/get.ts';
import { listUsers } from './users/list.ts';
import { updateUser } from './users/update.ts';
import { listUserChanges } from './users/user-changes.ts';

export const endpoints: readonly Endpoint[] = [
  createUser,
  createUsers,
  listUsers,
  getUser,
  updateUser,
  deleteUser,
  listChanges,
  listUserChanges,
  health,
  ready,
];
