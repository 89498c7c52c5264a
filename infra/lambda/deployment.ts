import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import * as z from 'zod';

const RETENTIONS = Object.values(RetentionDays).filter((days) => typeof days === 'number');

/** The file of a deployment: the resources that must exist in the account, the settings of the service, and options. */
const DeploymentFile = z.strictObject({
  account: z.string().regex(/^\d{12}$/, 'must have 12 digits'),
  region: z.string(),
  /** Its private subnets reach the identity provider and AWS Secrets Manager. */
  network: z.strictObject({
    vpcId: z.string(),
    availabilityZones: z.array(z.string()).min(1),
    /** One for each availability zone, in the same order. */
    privateSubnetIds: z.array(z.string()).min(1),
  }),
  /** An Aurora cluster of PostgreSQL 14 or later. */
  database: z.strictObject({
    clusterIdentifier: z.string(),
    /** The writer endpoint of the cluster. Only migrations connect to it: requests go through RDS Proxy. */
    host: z.string(),
    securityGroupId: z.string(),
    name: z.string(),
    /** A secret of AWS Secrets Manager with `username` and `password`. */
    secretArn: z.string(),
    /** The KMS key of the secret, if it is not the one that AWS manages. */
    secretKeyArn: z.string().optional(),
  }),
  /** Settings of the service, by their variables: `infra/docs/settings.md`. `settings.ts` refuses some of them. */
  settings: z.record(z.string(), z.string()),
  /** Whether the deployment runs the pending migrations. If false, run them by hand before. */
  migrate: z.boolean().default(true),
  /** Whether API Gateway writes a line for each request. */
  accessLog: z.boolean().default(true),
  /** Requests that API Gateway passes on. It answers the others with 429. */
  throttling: z
    .strictObject({
      requestsPerSecond: z.number().positive().default(1000),
      burst: z.int().positive().default(500),
    })
    .prefault({}),
  alarms: z
    .strictObject({
      /** The topic of Amazon SNS that alarms are sent to. Without it they only show their state. */
      topicArn: z.string().optional(),
      /** Percentage of requests that are answered with 5xx. */
      serverErrorPercent: z.number().positive().default(1),
      /** In milliseconds: the p99 of the time that a request takes, long polls included. */
      latencyMs: z.number().positive().default(3000),
    })
    .prefault({}),
  /** In days, for the logs of the functions and the access log. */
  logRetention: z.literal(RETENTIONS).default(RetentionDays.ONE_MONTH),
});

/** A deployment, with the defaults of what its file leaves out. */
export type Deployment = z.output<typeof DeploymentFile>;

/** Reads the content of a deployment file. @throws an error that names every member that is not allowed */
export function parseDeployment(content: unknown): Deployment {
  const { data, error } = DeploymentFile.safeParse(content);
  if (!data) throw new Error(`The deployment file is not valid.\n${z.prettifyError(error)}`);
  return data;
}
