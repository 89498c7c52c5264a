import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { functions } from '../functions.ts';
import cdk from './cdk.json' with { type: 'json' };
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

function synthesised(particulars: { otlpEndpoint?: string } = {}): Template {
  const deployment = { ...cdk.context.deployment, ...particulars };
  const app = new App({ outdir: mkdtempSync(join(folder, 'cdk.out-')) });
  const stack = new UserManagementStack(app, 'Test', {
    deployment,
    functions: deployed,
    bundles: join(folder, 'functions'),
  });
  return Template.fromStack(stack);
}

let template: Template;

type Resource = { readonly Properties: Readonly<Record<string, unknown>> };

function resources(
  type: string,
  of: Template = template,
): readonly (readonly [id: string, Resource['Properties']])[] {
  return Object.entries(of.findResources(type)).map(([id, { Properties }]) => [id, Properties]);
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
  const running = resources('AWS::Lambda::Function');

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
  template.resourceCountIs('AWS::Lambda::Permission', deployed.length);
  template.resourcePropertiesCountIs(
    'AWS::Lambda::Permission',
    {
      Action: 'lambda:InvokeFunction',
      Principal: 'apigateway.amazonaws.com',
      SourceArn: Match.objectLike({ 'Fn::Join': Match.anyValue() }),
    },
    deployed.length - 1,
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
  for (const [, properties] of resources('AWS::Lambda::Function')) {
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
  const traced = synthesised({ otlpEndpoint });

  for (const [, properties] of resources('AWS::Lambda::Function', traced)) {
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
    Auth: [
      { AuthScheme: 'SECRETS', IAMAuth: 'DISABLED', SecretArn: cdk.context.deployment.database.secretArn },
    ],
  });
  const [[proxy]] = resources('AWS::RDS::DBProxy') as [[string, unknown]];
  template.allResourcesProperties('AWS::Lambda::Function', {
    Environment: {
      Variables: {
        SVC_POSTGRES_HOST: { 'Fn::GetAtt': [proxy, 'Endpoint'] },
        SVC_POSTGRES_SSLMODE: 'verify-full',
      },
    },
  });
});

test('the password is asked of the extension, by those who reach the database, and stands nowhere', () => {
  const { secretArn } = cdk.context.deployment.database;
  const [near, others] = [true, false].map((wanted) =>
    deployed
      .filter(({ reachesDatabase }) => reachesDatabase === wanted)
      .map(({ operationId }) => operationId),
  );
  expect(others).toEqual(['health', 'unmatched']);

  for (const [id, { Layers, ...properties }] of resources('AWS::Lambda::Function')) {
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
