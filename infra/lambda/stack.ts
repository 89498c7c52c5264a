import { CfnOutput, Duration, Stack } from 'aws-cdk-lib';
import { CfnIntegration, CfnRoute, HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import { type IVpc, Port, SecurityGroup, Vpc } from 'aws-cdk-lib/aws-ec2';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction as LambdaTarget } from 'aws-cdk-lib/aws-events-targets';
import { ServicePrincipal } from 'aws-cdk-lib/aws-iam';
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
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import {
  AuroraPostgresEngineVersion,
  DatabaseCluster,
  DatabaseClusterEngine,
  DatabaseProxy,
  ProxyTarget,
} from 'aws-cdk-lib/aws-rds';
import { type ISecret, Secret } from 'aws-cdk-lib/aws-secretsmanager';
import type { Construct } from 'constructs';
import type { DeployedFunction } from '../functions.ts';
import type { Deployment } from './deployment.ts';
import { routeKeys } from './route-keys.ts';

const POSTGRES = 5432;

/** Longer than a connection, a statement and a fetch of keys may take together, and shorter than API Gateway waits. */
const TIMEOUT = Duration.seconds(10);

/** The next invocation does the rest. */
const SCHEDULED_TIMEOUT = Duration.minutes(5);

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

/** An HTTP API with one function per route, and RDS Proxy between the functions and the database. */
export class UserManagementStack extends Stack {
  constructor(scope: Construct, id: string, { deployment, functions, bundles }: Properties) {
    const { account, region } = deployment;
    super(scope, id, { env: { account, region } });
    const { vpcId, availabilityZones, privateSubnetIds } = deployment.network;
    const vpc = Vpc.fromVpcAttributes(this, 'Vpc', {
      vpcId,
      availabilityZones: [...availabilityZones],
      privateSubnetIds: [...privateSubnetIds],
    });
    const secret = Secret.fromSecretCompleteArn(this, 'Secret', deployment.database.secretArn);
    const securityGroup = new SecurityGroup(this, 'FunctionsSecurityGroup', { vpc });
    const proxy = this.#proxy(deployment, vpc, secret);
    proxy.connections.allowFrom(securityGroup, Port.tcp(POSTGRES));

    const api = new HttpApi(this, 'Api', { apiName: 'user-management' });
    const environment = environmentOf(deployment, proxy.endpoint, secret);
    const within = { environment, vpc, securityGroups: [securityGroup] };
    for (const { operationId, route, everyMinutes, reachesDatabase } of functions) {
      const code = Code.fromAsset(`${bundles}/${operationId}`);
      const timeout = everyMinutes ? SCHEDULED_TIMEOUT : TIMEOUT;
      const target = this.#function(operationId, {
        code,
        timeout,
        ...within,
        ...(reachesDatabase && SECRETS),
      });
      if (reachesDatabase) secret.grantRead(target);
      if (everyMinutes) this.#schedule(operationId, target, Duration.minutes(everyMinutes));
      else this.#integrate(api, operationId, target, route ? routeKeys(route) : ['$default']);
    }
    new CfnOutput(this, 'Url', { value: api.apiEndpoint });
  }

  /** Shares the connections to the database among the function instances. */
  #proxy({ database }: Deployment, vpc: IVpc, secret: ISecret): DatabaseProxy {
    const cluster = DatabaseCluster.fromDatabaseClusterAttributes(this, 'Database', {
      clusterIdentifier: database.clusterIdentifier,
      engine: DatabaseClusterEngine.auroraPostgres({ version: AuroraPostgresEngineVersion.VER_17_4 }),
      port: POSTGRES,
      securityGroups: [
        SecurityGroup.fromSecurityGroupId(this, 'DatabaseSecurityGroup', database.securityGroupId),
      ],
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

  #function(
    operationId: string,
    particulars: Pick<FunctionProps, 'code' | 'timeout' | 'vpc' | 'securityGroups' | 'paramsAndSecrets'> & {
      readonly environment: Environment;
    },
  ): LambdaFunction {
    return new LambdaFunction(this, operationId, {
      description: `User management: ${operationId}`,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: 'index.handler',
      memorySize: MEMORY,
      tracing: particulars.environment.POWERTOOLS_TRACE_ENABLED ? Tracing.ACTIVE : Tracing.DISABLED,
      logGroup: new LogGroup(this, `${operationId}Log`, { retention: RetentionDays.ONE_MONTH }),
      ...particulars,
    });
  }

  /** A failed invocation is not repeated before its next time. */
  #schedule(operationId: string, target: LambdaFunction, interval: Duration): void {
    new Rule(this, `${operationId}Schedule`, {
      schedule: Schedule.rate(interval),
      targets: [new LambdaTarget(target, { retryAttempts: 0 })],
    });
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

type Environment = Record<string, string>;

/** The settings of the functions. All others have their defaults. None of them contains the password. */
function environmentOf(
  { oauth, database, otlpEndpoint }: Deployment,
  host: string,
  secret: ISecret,
): Environment {
  return {
    SVC_ENV: 'production',
    SVC_OAUTH_JWKS_URI: oauth.jwksUri,
    SVC_OAUTH_ISSUER: oauth.issuer,
    SVC_OAUTH_AUDIENCE: oauth.audience,
    ...(oauth.deleteRole && { SVC_OAUTH_DELETE_ROLE: oauth.deleteRole }),
    SVC_POSTGRES_HOST: host,
    SVC_POSTGRES_PORT: String(POSTGRES),
    SVC_POSTGRES_DB: database.name,
    SVC_POSTGRES_USER: secret.secretValueFromJson('username').unsafeUnwrap(),
    SVC_POSTGRES_PASSWORD_FROM: `${EXTENSION}/secretsmanager/get?secretId=${secret.secretArn}`,
    SVC_POSTGRES_SSLMODE: 'verify-full',
    ...(otlpEndpoint
      ? { OTEL_EXPORTER_OTLP_ENDPOINT: otlpEndpoint }
      : { SVC_OTEL_ENABLED: 'false', POWERTOOLS_TRACE_ENABLED: 'true' }),
  };
}
