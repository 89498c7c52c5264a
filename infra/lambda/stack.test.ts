import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { SETTINGS } from '../../lib/settings/setting-table.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { functions } from '../functions.ts';
import example from './deployment.example.json' with { type: 'json' };
import { parseDeployment } from './deployment.ts';
import { isForFunctions } from './settings.ts';
import { UserManagementStack } from './stack.ts';

const deployed = await functions();
const folder = mkdtempSync(join(tmpdir(), 'user-management-stack-'));

beforeAll(() => {
  for (const { operationId } of deployed) {
    const bundle = join(folder, 'functions', operationId);
    mkdirSync(bundle, { recursive: true });
    // Only a difference between the bundles matters.
    writeFileSync(join(bundle, 'index.mjs'), operationId);
  }
  template = synthesised();
});

afterAll(() => rmSync(folder, { recursive: true }));

/** The stack of the example, with other members of the file, and further settings. */
function synthesised(members: object = {}, settings: object = {}): Template {
  const deployment = parseDeployment({
    ...example,
    ...members,
    settings: { ...example.settings, ...settings },
  });
  const app = new App({ outdir: mkdtempSync(join(folder, 'cdk.out-')) });
  const stack = new UserManagementStack(app, 'Test', {
    deployment,
    functions: deployed,
    bundles: join(folder, 'functions'),
  });
  return Template.fromStack(stack);
}

let template: Template;

type Resource = {
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly DependsOn?: readonly string[];
};

function resources(
  type: string,
  of: Template = template,
): readonly (readonly [id: string, Resource['Properties']])[] {
  return Object.entries(of.findResources(type)).map(([id, { Properties }]) => [id, Properties]);
}

/** The functions of the service, without the one by which CDK runs the migrations. */
function serviceFunctions(of: Template = template) {
  return resources('AWS::Lambda::Function', of).filter(([, { Handler }]) => Handler === 'index.handler');
}

/** The function behind the integration of a route. */
function functionBehind(target: unknown): string {
  const [, [, { Ref: integration }]] = (target as { 'Fn::Join': [string, [string, { Ref: string }]] })[
    'Fn::Join'
  ];
  const { IntegrationUri } =
    Object.fromEntries(resources('AWS::ApiGatewayV2::Integration'))[integration] ?? {};
  const [logicalId] = (IntegrationUri as { 'Fn::GetAtt': [string, string] })['Fn::GetAtt'];
  return logicalId.slice(0, -8);
}

/** The settings of a function, with references to other resources as CloudFormation would replace them. */
function variablesOf(properties: Resource['Properties']): Record<string, string> {
  const { Variables } = properties.Environment as { Variables: Record<string, unknown> };
  return Object.fromEntries(
    Object.entries(Variables).map(([name, value]) => [name, typeof value === 'string' ? value : 'resolved']),
  );
}

test('every path reaches its function, with and without a trailing slash, HEAD wherever GET does', () => {
  const routes = resources('AWS::ApiGatewayV2::Route').map(([, { RouteKey, Target }]) => [
    RouteKey,
    functionBehind(Target),
  ]);

  const expected = endpoints.flatMap(({ route: { method, path, operationId } }) => {
    const bare = path.replace(/\/$/, '');
    const methods = method === 'GET' ? ['GET', 'HEAD'] : [method];
    return methods.flatMap((name) =>
      [`${name} ${bare}`, `${name} ${bare}/`].map((key) => [key, operationId]),
    );
  });
  expect(routes).toContainEqual(['HEAD /api/v1/users/{user_id}/', 'getUser']);
  expect(routes).toEqual([...expected, ['$default', 'unmatched']]);
});

test('every function runs its own bundle on Node.js 24', () => {
  const running = serviceFunctions();

  expect(running.map(([id]) => id.slice(0, -8)).sort()).toEqual(
    deployed.map(({ operationId }) => operationId).sort(),
  );
  for (const [, properties] of running) {
    expect(properties).toMatchObject({
      Runtime: 'nodejs24.x',
      Handler: 'index.handler',
      Architectures: ['arm64'],
    });
  }
  const codes = running.map(([, { Code }]) => (Code as { S3Key: string }).S3Key);
  expect(new Set(codes).size).toBe(deployed.length);
});

test('events are of payload format 2.0', () => {
  template.allResourcesProperties('AWS::ApiGatewayV2::Integration', {
    IntegrationType: 'AWS_PROXY',
    PayloadFormatVersion: '2.0',
  });
});

test('only the API, or the schedule, may call a function', () => {
  const functions = deployed.filter(({ invokedBy }) => invokedBy !== 'deployment');
  template.resourceCountIs('AWS::Lambda::Permission', functions.length);
  template.resourcePropertiesCountIs(
    'AWS::Lambda::Permission',
    {
      Action: 'lambda:InvokeFunction',
      Principal: 'apigateway.amazonaws.com',
      SourceArn: Match.objectLike({ 'Fn::Join': Match.anyValue() }),
    },
    functions.length - 1,
  );
  template.resourcePropertiesCountIs(
    'AWS::Lambda::Permission',
    { Action: 'lambda:InvokeFunction', Principal: 'events.amazonaws.com', SourceArn: Match.anyValue() },
    1,
  );
});

test('what is kept no longer is deleted every ten minutes', () => {
  template.resourceCountIs('AWS::Events::Rule', 1);
  const [[, { ScheduleExpression, State, Targets }]] = resources('AWS::Events::Rule') as [
    [string, Resource['Properties']],
  ];
  const [{ Arn }] = Targets as [{ Arn: { 'Fn::GetAtt': [string] } }];

  expect([ScheduleExpression, State]).toEqual(['rate(10 minutes)', 'ENABLED']);
  expect(Arn['Fn::GetAtt'][0].slice(0, -8)).toBe('maintain');
});

test('the settings of every function are valid, and each is known', () => {
  for (const [, properties] of serviceFunctions()) {
    const settings = readSettings(variablesOf(properties));

    expect(settings).toMatchObject({
      unknown: [],
      environment: 'production',
      xray: true,
      otel: { enabled: false },
    });
  }
});

test('with an OTLP receiver the functions trace with OpenTelemetry, and not with X-Ray', () => {
  const otlpEndpoint = 'https://collector.example.com';
  const traced = synthesised({}, { OTEL_EXPORTER_OTLP_ENDPOINT: otlpEndpoint });

  for (const [, properties] of serviceFunctions(traced)) {
    const variables = variablesOf(properties);

    expect(variables.OTEL_EXPORTER_OTLP_ENDPOINT).toBe(otlpEndpoint);
    expect(readSettings(variables)).toMatchObject({ unknown: [], xray: false, otel: { enabled: true } });
    expect(properties.TracingConfig).toBeUndefined();
  }
});

test('the functions reach the database through RDS Proxy alone, encrypted', () => {
  template.hasResourceProperties('AWS::RDS::DBProxy', {
    EngineFamily: 'POSTGRESQL',
    RequireTLS: true,
    Auth: [{ AuthScheme: 'SECRETS', IAMAuth: 'DISABLED', SecretArn: example.database.secretArn }],
  });
  const [[proxy]] = resources('AWS::RDS::DBProxy') as [[string, unknown]];
  for (const [id, properties] of serviceFunctions().filter(([id]) => id !== migrateId())) {
    const { Variables } = properties.Environment as { Variables: object };
    expect([id, Variables]).toEqual([
      id,
      expect.objectContaining({
        SVC_POSTGRES_HOST: { 'Fn::GetAtt': [proxy, 'Endpoint'] },
        SVC_POSTGRES_SSLMODE: 'verify-full',
      }),
    ]);
  }
});

const migrateId = () => serviceFunctions().find(([id]) => id.startsWith('migrate'))?.[0];

describe('the migrations', () => {
  test('run before any other function is created or replaced, so that a failed one fails the deployment', () => {
    const [[trigger, { HandlerArn }]] = resources('Custom::Trigger') as [[string, Resource['Properties']]];
    const { Properties } = template.findResources('AWS::Lambda::Version')[
      (HandlerArn as { Ref: string }).Ref
    ] as Resource;
    const all = template.findResources('AWS::Lambda::Function') as Record<string, Resource>;
    const others = serviceFunctions().filter(([id]) => id !== migrateId());

    expect(Properties.FunctionName).toEqual({ Ref: migrateId() });
    expect(others).toHaveLength(deployed.length - 1);
    for (const [id] of others) expect(all[id]?.DependsOn, id).toContain(trigger);
    expect(all[migrateId() ?? '']?.DependsOn).not.toContain(trigger);
  });

  test('connect to the cluster itself, with its authority, from the security group that may', () => {
    const [, properties = {}] = serviceFunctions().find(([id]) => id === migrateId()) ?? [];
    const [[trigger]] = resources('Custom::Trigger') as [[string, unknown]];
    const [rule] = resources('AWS::EC2::SecurityGroupIngress').find(
      ([, { Description }]) => Description === 'migrations',
    ) as [string, unknown];

    expect(variablesOf(properties)).toMatchObject({
      SVC_POSTGRES_HOST: example.database.host,
      SVC_POSTGRES_POOLER: 'none',
      SVC_POSTGRES_SSLMODE: 'verify-full',
      NODE_EXTRA_CA_CERTS: '/var/runtime/ca-cert.pem',
    });
    expect(properties.Timeout).toBe(14 * 60);
    template.hasResourceProperties('AWS::EC2::SecurityGroupIngress', {
      GroupId: example.database.securityGroupId,
      Description: 'migrations',
    });
    const { DependsOn } = template.findResources('Custom::Trigger')[trigger] as Resource;
    expect(DependsOn).toContain(rule);
  });

  test('can be run by hand instead', () => {
    const without = synthesised({ migrate: false });

    without.resourceCountIs('Custom::Trigger', 0);
    expect(serviceFunctions(without)).toHaveLength(deployed.length - 1);
  });
});

describe('the settings of a deployment file', () => {
  test('are all that a function reads, except for those of the resources of the stack', () => {
    const refused = Object.keys(SETTINGS).filter((name) => !isForFunctions(name));
    const ofStack = ['HOST', 'PORT', 'USER', 'PASSWORD', 'PASSWORD_FROM', 'DB'].map(
      (name) => `SVC_POSTGRES_${name}`,
    );
    const ofHost = ['SVC_HOST', 'SVC_PORT', 'SVC_KEEP_ALIVE_TIMEOUT', 'SVC_POSTGRES_MIGRATE'];
    const ofShutdown = ['DRAIN_TIMEOUT', 'READINESS_DELAY', 'SERVER_TIMEOUT'].map(
      (name) => `SVC_SHUTDOWN_${name}`,
    );
    const ofMetrics = [
      'OTEL_METRICS_EXPORTER',
      ...['ENDPOINT', 'HEADERS', 'PROTOCOL', 'TIMEOUT'].map((name) => `OTEL_EXPORTER_OTLP_METRICS_${name}`),
    ];

    expect(refused.toSorted()).toEqual(
      [...ofStack, ...ofHost, ...ofShutdown, ...ofMetrics, 'AWS_SESSION_TOKEN'].toSorted(),
    );
  });

  test('reach every function', () => {
    const given = {
      SVC_LOG_LEVEL: 'warning',
      SVC_BODY_LIMIT: '2048',
      SVC_CHANGES_RETENTION: '7',
      SVC_OAUTH_ALGORITHMS: 'ES256',
      SVC_OAUTH_DELETE_ROLE: 'users.delete',
      SVC_POSTGRES_SSLMODE: 'require',
      OTEL_SERVICE_NAME: 'people',
      NODE_OPTIONS: '--enable-source-maps',
    };
    for (const [, properties] of serviceFunctions(synthesised({}, given)))
      expect(variablesOf(properties)).toMatchObject(given);
  });

  test.each(globSync('infra/examples/identity-providers/*.env'))('can be those of %s', (file) => {
    const lines = readFileSync(file, 'utf8').matchAll(/^(\w+)=(.*)$/gm);
    const given = Object.fromEntries([...lines].map(([, name, value]) => [name, value]));
    for (const [, properties] of serviceFunctions(synthesised({}, given))) {
      expect(variablesOf(properties)).toMatchObject(given);
      expect(readSettings(variablesOf(properties)).oauth.rolesClaim).toBe(given.SVC_OAUTH_ROLES_CLAIM);
    }
  });

  test.each([
    [{ SVC_PORT: '80' }, /must not be in a deployment file: SVC_PORT/],
    [{ SVC_POSTGRES_PASSWORD: 'hunter2' }, /must not be in a deployment file: SVC_POSTGRES_PASSWORD$/],
    [{ SVC_OAUTH_ROLE_CLAIM: 'scp' }, /must not be in a deployment file: SVC_OAUTH_ROLE_CLAIM/],
    [{ SVC_LOG_LEVEL: 'loud' }, /SVC_LOG_LEVEL is not valid: it accepts/],
    [{ SVC_OAUTH_ISSUER: '' }, /SVC_OAUTH_ISSUER is required/],
  ])('are refused when they cannot work: %j', (given, message) => {
    expect(() => synthesised({}, given)).toThrow(message);
  });

  test.each([
    [{ oauth: {} }, /Unrecognized key: "oauth"/],
    [{ region: undefined }, /region/],
    [{ logRetention: 31 }, /logRetention/],
  ])('stand in a file whose other members are checked: %j', (members, message) => {
    expect(() => synthesised(members)).toThrow(message);
  });
});

describe('options', () => {
  const stageOf = (of: Template) => resources('AWS::ApiGatewayV2::Stage', of)[0]?.[1];

  test('limit the rate of requests, and log each without its path', () => {
    const { AccessLogSettings } = stageOf(template) ?? {};
    const { DestinationArn, Format } = AccessLogSettings as Record<string, string>;
    const [accessLog] = resources('AWS::Logs::LogGroup').find(([id]) => id.startsWith('AccessLog')) as [
      string,
      unknown,
    ];

    expect(stageOf(template)).toMatchObject({
      StageName: '$default',
      DefaultRouteSettings: { ThrottlingRateLimit: 1000, ThrottlingBurstLimit: 500 },
    });
    expect(DestinationArn).toEqual({ 'Fn::GetAtt': [accessLog, 'Arn'] });
    expect(Object.keys(JSON.parse(Format ?? ''))).toEqual([
      'time',
      'request',
      'route',
      'status',
      'latency_ms',
      'integration_error',
      'ip',
    ]);
    expect(Format).not.toMatch(/context\.path|authorizer|header/);
  });

  test('can be other values', () => {
    const other = synthesised({
      accessLog: false,
      throttling: { requestsPerSecond: 50, burst: 20 },
      logRetention: 90,
      alarms: { topicArn: 'arn:aws:sns:eu-central-1:123456789012:operators', latencyMs: 500 },
      database: { ...example.database, secretKeyArn: 'arn:aws:kms:eu-central-1:123456789012:key/1' },
    });

    expect(stageOf(other)?.AccessLogSettings).toBeUndefined();
    expect(stageOf(other)?.DefaultRouteSettings).toEqual({
      ThrottlingRateLimit: 50,
      ThrottlingBurstLimit: 20,
    });
    other.allResourcesProperties('AWS::Logs::LogGroup', { RetentionInDays: 90 });
    other.allResourcesProperties('AWS::CloudWatch::Alarm', {
      AlarmActions: ['arn:aws:sns:eu-central-1:123456789012:operators'],
    });
    other.hasResourceProperties('AWS::CloudWatch::Alarm', { Threshold: 500, ExtendedStatistic: 'p99' });
    other.hasResourceProperties('AWS::IAM::Policy', {
      PolicyDocument: { Statement: Match.arrayWith([Match.objectLike({ Action: 'kms:Decrypt' })]) },
    });
  });

  test('keep logs for 30 days by default', () => {
    template.allResourcesProperties('AWS::Logs::LogGroup', { RetentionInDays: 30 });
    template.resourceCountIs('AWS::Logs::LogGroup', deployed.length + 1);
  });

  test('raise an alarm for server errors, slow responses, throttled functions and a cleanup that fails', () => {
    const alarms = resources('AWS::CloudWatch::Alarm').map(
      ([id, { Threshold, EvaluationPeriods, AlarmActions }]) => [
        id.slice(0, -8),
        Threshold,
        EvaluationPeriods,
        AlarmActions,
      ],
    );

    expect(alarms.toSorted()).toEqual([
      ['CleanupAlarm', 0, 6, undefined],
      ['LatencyAlarm', 3000, 3, undefined],
      ['ServerErrorsAlarm', 1, 2, undefined],
      ['ThrottlesAlarm', 0, 2, undefined],
    ]);
    template.allResourcesProperties('AWS::CloudWatch::Alarm', { TreatMissingData: 'notBreaching' });
  });
});

test('the password is asked of the extension, by those who reach the database, and stands nowhere', () => {
  const { secretArn } = example.database;
  const [near, others] = [true, false].map((wanted) =>
    deployed
      .filter(({ reachesDatabase }) => reachesDatabase === wanted)
      .map(({ operationId }) => operationId),
  );
  expect(others).toEqual(['health', 'unmatched']);

  for (const [id, { Layers, ...properties }] of serviceFunctions()) {
    const variables = variablesOf(properties);
    expect(variables.SVC_POSTGRES_PASSWORD).toBeUndefined();
    expect(variables.SVC_POSTGRES_PASSWORD_FROM).toBe(
      `http://localhost:2773/secretsmanager/get?secretId=${secretArn}`,
    );
    const extension = [expect.stringMatching(/AWS-Parameters-and-Secrets-Lambda-Extension-Arm64/)];
    expect(Layers).toEqual(near?.includes(id.slice(0, -8)) ? extension : undefined);
  }
  const readers = template.findResources('AWS::IAM::Policy', {
    Properties: {
      PolicyDocument: {
        Statement: Match.arrayWith([
          Match.objectLike({
            Action: ['secretsmanager:GetSecretValue', 'secretsmanager:DescribeSecret'],
            Resource: secretArn,
          }),
        ]),
      },
    },
  });
  expect(Object.keys(readers).filter((id) => !id.startsWith('Proxy'))).toHaveLength(near?.length ?? 0);
  expect(JSON.stringify(template.toJSON())).not.toContain('SecretString:password');
});
