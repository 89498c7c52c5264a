import { readSettings } from '../../lib/settings/settings.ts';
import { type Resource, render } from './render.ts';

/** Where the kustomizations are. */
export const folder = 'infra/kubernetes';

/** Everything that can be deployed, as the tests look at it. */
export const overlays = ['development', 'production', 'production-migrated-by-job'].map((name) => {
  const resources = render(`${folder}/overlays/${name}`);
  const find = (kind: string): Resource | undefined => resources.find((resource) => resource.kind === kind);
  const one = (kind: string): Resource => find(kind) ?? {};
  const deployment = one('Deployment');
  const pod: Resource = deployment.spec.template;
  const container: Resource = pod.spec.containers[0];
  const secrets = container.env.map((variable: Resource) => [variable.name, 'from a secret']);

  return {
    name,
    isProduction: name.startsWith('production'),
    resources,
    one,
    deployment,
    /** The templates of the pods of the API and, where there is one, of the migration. */
    pods: resources.flatMap(({ spec }): Resource[] => spec?.template ?? []),
    pod,
    container,
    migration: find('Job'),
    /** What the service makes of its environment. */
    settings: readSettings({ ...one('ConfigMap').data, ...Object.fromEntries(secrets) }),
  };
});
