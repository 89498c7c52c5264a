import { join } from 'node:path';
import { App } from 'aws-cdk-lib';
import { functions } from '../functions.ts';
import type { Deployment } from './deployment.ts';
import { UserManagementStack } from './stack.ts';

const app = new App();
const deployment: Deployment | undefined = app.node.tryGetContext('deployment');
if (!deployment) throw new Error('cdk.json has no "deployment" in its context: see deployment.ts');
new UserManagementStack(app, 'UserManagement', {
  deployment,
  functions: await functions(),
  bundles: join(import.meta.dirname, '../../dist/functions'),
});
app.synth();
