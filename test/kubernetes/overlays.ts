import { readSettings } from '../../lib/settings/settings.ts';
import { type Resource, render } from './render.ts';

/** The folder of the kustomizations. */
export const folder = 'infra/kubernetes';

export const renderWith = (components: readonly string[], overlay = 'production'): readonly Resource[] =>
  components.reduce(
    (given, name) => render(`${folder}/components/${name}`, given),
    render(`${folder}/overlays/${overlay}`),
  );

/** The function that finds a resource by its kind and name. */
export const finderIn =
  (resources: readonly Resource[]) =>
  (kind: string, name = 'user-management-service'): Resource =>
    resources.find((resource) => resource.kind === kind && resource.metadata.name === name) ?? {};

/** Everything that can be deployed, in the form that the tests need. */
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
    /** The pod templates of the API and of the migration, if there is one. */
    pods: resources.flatMap(({ spec }): Resource[] => spec?.template ?? []),
    pod,
    container,
    migration: find('Job'),
    /** The settings that the service reads from its environment. */
    settings: readSettings({ ...one('ConfigMap').data, ...Object.fromEntries(secrets) }),
  };
});
