import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { App } from 'aws-cdk-lib';
import { functions } from '../functions.ts';
import { parseDeployment } from './deployment.ts';
import { UserManagementStack } from './stack.ts';

const app = new App();
const file: unknown = app.node.tryGetContext('deployment');
if (typeof file !== 'string')
  throw new Error('Name your deployment file: -- --context deployment=<path>. See README.md.');
// npm changes the folder. The path is relative to the one in which you called it.
// biome-ignore lint/style/noProcessEnv: npm says it in a variable only
const path = resolve(process.env.INIT_CWD ?? '.', file);
new UserManagementStack(app, 'UserManagement', {
  deployment: parseDeployment(JSON.parse(readFileSync(path, 'utf8'))),
  functions: await functions(),
  bundles: join(import.meta.dirname, '../../dist/functions'),
});
app.synth();
