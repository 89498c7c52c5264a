import { validate as validateDeployment } from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment';
import { validate as validateAutoscaler } from 'kubernetes-models/_schemas/IoK8sApiAutoscalingV2HorizontalPodAutoscaler';
import { validate as validateCronJob } from 'kubernetes-models/_schemas/IoK8sApiBatchV1CronJob';
import { validate as validateJob } from 'kubernetes-models/_schemas/IoK8sApiBatchV1Job';
import { validate as validateConfigMap } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ConfigMap';
import { validate as validateNamespace } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Namespace';
import { validate as validateClaim } from 'kubernetes-models/_schemas/IoK8sApiCoreV1PersistentVolumeClaim';
import { validate as validateService } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service';
import { validate as validateServiceAccount } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ServiceAccount';
import { validate as validateIngress } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1Ingress';
import { validate as validateNetworkPolicy } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy';
import { validate as validateBudget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget';
import type { Resource } from './render.ts';

type Validate = ((resource: unknown) => boolean) & {
  errors?: readonly { instancePath: string; message?: string; keyword: string }[] | null;
};

const SCHEMAS = {
  'apps/v1 Deployment': validateDeployment,
  'autoscaling/v2 HorizontalPodAutoscaler': validateAutoscaler,
  'batch/v1 CronJob': validateCronJob,
  'batch/v1 Job': validateJob,
  'networking.k8s.io/v1 Ingress': validateIngress,
  'networking.k8s.io/v1 NetworkPolicy': validateNetworkPolicy,
  'policy/v1 PodDisruptionBudget': validateBudget,
  'v1 ConfigMap': validateConfigMap,
  'v1 Namespace': validateNamespace,
  'v1 PersistentVolumeClaim': validateClaim,
  'v1 Service': validateService,
  'v1 ServiceAccount': validateServiceAccount,
} as Readonly<Record<string, Validate>>;

/** The fields of a resource that the API's schema does not allow: wrong values, and unknown fields. */
export function faultsOf(resource: Resource): readonly string[] {
  const type = `${resource.apiVersion} ${resource.kind}`;
  const validate = SCHEMAS[type];
  if (!validate) return [`${type} is not known`];
  const unread = new Set<string>();
  if (!validate(watched(resource, '', unread))) {
    return (validate.errors ?? []).map(({ instancePath, keyword }) => `${type}${instancePath}: ${keyword}`);
  }
  return [...unread].map((path) => `${type}${path}: unknown`);
}

/** The schemas allow unknown fields. A field that the check never read is unknown. */
function watched(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (!Array.isArray(value)) for (const key of Object.keys(value)) unread.add(`${path}/${key}`);
  const inner = new Map<string, unknown>();
  return new Proxy(value, {
    get(target, key) {
      const field = Reflect.get(target, key);
      if (typeof key !== 'string') return field;
      unread.delete(`${path}/${key}`);
      if (!inner.has(key)) inner.set(key, watched(field, `${path}/${key}`, unread));
      return inner.get(key);
    },
  });
}
