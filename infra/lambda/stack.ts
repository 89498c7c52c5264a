import { Annotations, CfnOutput, Duration, Stack } from 'aws-cdk-lib';
import { CfnIntegration, CfnRoute, type CfnStage, HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import { type ISecurityGroup, type IVpc, Port, SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction as LambdaTarget } from 'aws-cdk-lib/aws-events-targets';
import { ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import {
  Architecture,
  Code,
  type FunctionProps,
  Function as LambdaFunction,
  ParamsAndSecretsLayerVersion,
  ParamsAndSecretsVersions,
  Runtime,
  Tracing,
} from 'aws-cdk-lib/aws-lambda';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import {
  AuroraPostgresEngineVersion,
  DatabaseCluster,
  DatabaseClusterEngine,
  DatabaseProxy,
  ProxyTarget,
} from 'aws-cdk-lib/aws-rds';
import { type ISecret, Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Trigger } from 'aws-cdk-lib/triggers';
import type { Construct } from 'constructs';
import type { DeployedFunction } from '../functions.ts';
import { createAlarms } from './alarms.ts';
import type { Deployment } from './deployment.ts';
import { routeKeys } from './route-keys.ts';
import { settingsOf } from './settings.ts';

const POSTGRES = 5432;

/** How often expired changes and idempotency keys are deleted. */
const CLEANUP_INTERVAL = Duration.minutes(10);

/** Time limits of the functions, by what invokes them. */
const TIMEOUTS = {
  /** Longer than a connection, a statement and a fetch of keys may take together, and shorter than API Gateway waits. */
  request: Duration.seconds(10),
  /** The next invocation does the rest. */
  schedule: Duration.minutes(5),
  /** A minute less than AWS Lambda allows, because the function that waits for it has the same limit. */
  deployment: Duration.minutes(14),
} as const satisfies Readonly<Record<DeployedFunction['invokedBy'], Duration>>;

/** The authorities of RDS are in this file of the runtime, and Node.js does not trust them by itself. RDS Proxy has others. */
const RDS_AUTHORITIES = '/var/runtime/ca-cert.pem';

/** A line of the access log. It has no path and no query, because they may contain an email. */
const ACCESS_LOG = JSON.stringify({
  time: '$context.requestTime',
  request: '$context.requestId',
  route: '$context.routeKey',
  status: '$context.status',
  latency_ms: '$context.responseLatency',
  integration_error: '$context.integrationErrorMessage',
  ip: '$context.identity.sourceIp',
});

/**
 * In megabytes. The share of the processor depends on it, and the first request needs the processor more than memory.
 */
const MEMORY = 1024;

/** The values for SVC_POSTGRES_PASSWORD_FROM. */
const SECRETS = {
  paramsAndSecrets: ParamsAndSecretsLayerVersion.fromVersion(ParamsAndSecretsVersions.V1_0_103),
};

/** Address of the AWS Parameters and Secrets extension in a function instance. */
const EXTENSION = 'http://localhost:2773';

type Properties = {
  readonly deployment: Deployment;
  readonly functions: readonly DeployedFunction[];
  /** The folder with a folder `<operationId>` for each function, which CDK packs. */
  readonly bundles: string;
};

type Environment = Readonly<Record<string, string>>;

/** An HTTP API with one function per route, and RDS Proxy between the functions and the database. */
export class UserManagementStack extends Stack {
  constructor(scope: Construct, id: string, { deployment, functions, bundles }: Properties) {
    const { account, region, database } = deployment;
    super(scope, id, { env: { account, region } });
    const { vpcId, availabilityZones, privateSubnetIds } = deployment.network;
    const vpc = Vpc.fromVpcAttributes(this, 'Vpc', { vpcId, availabilityZones, privateSubnetIds });
    const noRoutes = 'The stack uses no route table, and a deployment file names none.';
    Annotations.of(vpc).acknowledgeWarning('@aws-cdk/aws-ec2:noSubnetRouteTableId', noRoutes);
    const secret = Secret.fromSecretAttributes(this, 'Secret', {
      secretCompleteArn: database.secretArn,
      ...(database.secretKeyArn && {
        encryptionKey: Key.fromKeyArn(this, 'SecretKey', database.secretKeyArn),
      }),
    });
    const securityGroup = new SecurityGroup(this, 'FunctionsSecurityGroup', { vpc });
    const databaseGroup = SecurityGroup.fromSecurityGroupId(
      this,
      'DatabaseSecurityGroup',
      database.securityGroupId,
    );
    const proxy = this.#proxy(deployment, vpc, secret, databaseGroup);
    proxy.connections.allowFrom(securityGroup, Port.tcp(POSTGRES));

    const api = this.#api(deployment);
    const { variables, hasXRay } = settingsOf(deployment);
    const environment = { ...variables, ...ofDatabase(database.name, proxy.endpoint, secret) };
    const deployed = new Map<string, LambdaFunction>();
    for (const { operationId, route, invokedBy, reachesDatabase } of functions) {
      if (invokedBy === 'deployment' && !deployment.migrate) continue;
      const target = this.#function(operationId, deployment, {
        code: Code.fromAsset(`${bundles}/${operationId}`),
        timeout: TIMEOUTS[invokedBy],
        tracing: hasXRay ? Tracing.ACTIVE : Tracing.DISABLED,
        environment: invokedBy === 'deployment' ? forMigrations(environment, database.host) : environment,
        vpc,
        securityGroups: [securityGroup],
        ...(reachesDatabase && SECRETS),
      });
      deployed.set(operationId, target);
      if (reachesDatabase) secret.grantRead(target);
      if (invokedBy === 'schedule') this.#schedule(operationId, target);
      if (invokedBy === 'request')
        this.#integrate(api, operationId, target, route ? routeKeys(route) : ['$default']);
    }
    const { migrate, maintain, ...others } = Object.fromEntries(deployed);
    if (!maintain) throw new Error('there is no function maintain');
    if (migrate)
      this.#migrateFirst(migrate, [maintain, ...Object.values(others)], securityGroup, databaseGroup);
    createAlarms(this, deployment, { api, maintain });
    new CfnOutput(this, 'Url', { value: api.apiEndpoint });
  }

  /** Shares the connections to the database among the function instances. */
  #proxy({ database }: Deployment, vpc: IVpc, secret: ISecret, databaseGroup: ISecurityGroup): DatabaseProxy {
    const cluster = DatabaseCluster.fromDatabaseClusterAttributes(this, 'Database', {
      clusterIdentifier: database.clusterIdentifier,
      engine: DatabaseClusterEngine.auroraPostgres({ version: AuroraPostgresEngineVersion.VER_17_4 }),
      port: POSTGRES,
      securityGroups: [databaseGroup],
    });
    return new DatabaseProxy(this, 'Proxy', {
      dbProxyName: 'user-management',
      proxyTarget: ProxyTarget.fromCluster(cluster),
      secrets: [secret],
      vpc,
      securityGroups: [new SecurityGroup(this, 'ProxySecurityGroup', { vpc })],
      requireTLS: true,
      // A request gives up earlier, and informs its caller.
      borrowTimeout: Duration.seconds(1),
    });
  }

  #api({ accessLog, throttling, logRetention }: Deployment): HttpApi {
    const api = new HttpApi(this, 'Api', { apiName: 'user-management' });
    // A stage of its own would replace the default stage of stacks that exist already.
    const stage = api.defaultStage?.node.defaultChild as CfnStage;
    stage.defaultRouteSettings = {
      throttlingRateLimit: throttling.requestsPerSecond,
      throttlingBurstLimit: throttling.burst,
    };
    if (accessLog) {
      const { logGroupArn } = new LogGroup(this, 'AccessLog', { retention: logRetention });
      stage.accessLogSettings = { destinationArn: logGroupArn, format: ACCESS_LOG };
    }
    return api;
  }

  #function(
    operationId: string,
    { logRetention }: Deployment,
    particulars: Pick<FunctionProps, 'code' | 'environment' | 'vpc'> & Partial<FunctionProps>,
  ): LambdaFunction {
    return new LambdaFunction(this, operationId, {
      description: `User management: ${operationId}`,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: 'index.handler',
      memorySize: MEMORY,
      logGroup: new LogGroup(this, `${operationId}Log`, { retention: logRetention }),
      ...particulars,
    });
  }

  /** A failed invocation is not repeated before its next time. */
  #schedule(operationId: string, target: LambdaFunction): void {
    new Rule(this, `${operationId}Schedule`, {
      schedule: Schedule.rate(CLEANUP_INTERVAL),
      targets: [new LambdaTarget(target, { retryAttempts: 0 })],
    });
  }

  /**
   * Runs the pending migrations before any other function is created or replaced. If they fail, the deployment fails, and
   * the functions stay as they were. They run again only if their own code or settings change.
   */
  #migrateFirst(
    migrate: LambdaFunction,
    others: readonly LambdaFunction[],
    securityGroup: ISecurityGroup,
    databaseGroup: ISecurityGroup,
  ): void {
    databaseGroup.connections.allowFrom(securityGroup, Port.tcp(POSTGRES), 'migrations');
    const trigger = new Trigger(this, 'Migrations', {
      handler: migrate,
      timeout: TIMEOUTS.deployment.plus(Duration.seconds(30)),
    });
    trigger.executeAfter(databaseGroup);
    trigger.executeBefore(...others);
  }

  /** Uses low-level routes, because the helper for routes does not accept a path with a trailing slash. */
  #integrate(api: HttpApi, operationId: string, target: LambdaFunction, keys: readonly string[]): void {
    const integration = new CfnIntegration(this, `${operationId}Integration`, {
      apiId: api.apiId,
      integrationType: 'AWS_PROXY',
      integrationUri: target.functionArn,
      payloadFormatVersion: '2.0',
    });
    for (const [index, routeKey] of keys.entries()) {
      new CfnRoute(this, `${operationId}Route${index}`, {
        apiId: api.apiId,
        routeKey,
        target: `integrations/${integration.ref}`,
      });
    }
    target.addPermission('Api', {
      principal: new ServicePrincipal('apigateway.amazonaws.com'),
      sourceArn: this.formatArn({ service: 'execute-api', resource: api.apiId, resourceName: '*' }),
    });
  }
}

/** The settings of the database, in place of the password the address to ask for it. */
function ofDatabase(name: string, host: string, secret: ISecret): Environment {
  return {
    SVC_POSTGRES_HOST: host,
    SVC_POSTGRES_PORT: String(POSTGRES),
    SVC_POSTGRES_DB: name,
    SVC_POSTGRES_USER: secret.secretValueFromJson('username').unsafeUnwrap(),
    SVC_POSTGRES_PASSWORD_FROM: `${EXTENSION}/secretsmanager/get?secretId=${secret.secretArn}`,
  };
}

/** Migrations need a session of their own, which a pooler does not give, and its limit of statements may be off. */
function forMigrations(environment: Environment, host: string): Environment {
  return {
    NODE_EXTRA_CA_CERTS: RDS_AUTHORITIES,
    ...environment,
    SVC_POSTGRES_HOST: host,
    SVC_POSTGRES_POOLER: 'none',
  };
}
