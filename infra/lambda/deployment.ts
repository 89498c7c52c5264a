/** What the account that the service goes to has already, by name. */
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
  readonly oauth: { readonly jwksUri: string; readonly issuer: string; readonly audience: string };
  /** Where traces go, over OTLP; without it they go to AWS X-Ray. */
  readonly otlpEndpoint?: string;
};
