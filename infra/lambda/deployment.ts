/** The names of the resources that must exist in the account. */
export type Deployment = {
  readonly account: string;
  readonly region: string;
  /** A network whose private subnets reach the identity provider. */
  readonly network: {
    readonly vpcId: string;
    readonly availabilityZones: readonly string[];
    readonly privateSubnetIds: readonly string[];
  };
  /** An Aurora cluster of PostgreSQL 14 or later. */
  readonly database: {
    readonly clusterIdentifier: string;
    readonly securityGroupId: string;
    readonly name: string;
    /** A secret of AWS Secrets Manager with `username` and `password`. */
    readonly secretArn: string;
  };
  readonly oauth: {
    readonly jwksUri: string;
    readonly issuer: string;
    readonly audience: string;
    /** `users.write` by default. */
    readonly deleteRole?: 'users.write' | 'users.delete';
  };
  /** Receiver of traces, over OTLP. Without it they go to AWS X-Ray. */
  readonly otlpEndpoint?: string;
};
