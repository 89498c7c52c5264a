import * as z from 'zod';
import { flag } from '../../lib/settings/setting-forms.ts';
import { SETTINGS } from '../../lib/settings/setting-table.ts';
import { keepFile, table } from './generated-file.ts';

/** The sections of the page. A setting belongs to the first section whose pattern matches its name. */
const SECTIONS: readonly (readonly [heading: string, names: RegExp])[] = [
  ['Service', /^SVC_(?!OAUTH|POSTGRES|SHUTDOWN|OTEL)/],
  ['Access tokens', /^SVC_OAUTH_/],
  ['PostgreSQL', /^(SVC_POSTGRES|AWS)_/],
  ['Shutdown', /^SVC_SHUTDOWN_/],
  ['Traces and metrics', /^(SVC_OTEL|OTEL|POWERTOOLS)_(?!EXPORTER_OTLP_(TRACES|METRICS))/],
];

/** Variables that are not settings: libraries read them, and the service passes them on. */
const OTHER_VARIABLES: readonly (readonly [names: string, meaning: string])[] = [
  ['`OTEL_SDK_DISABLED`', '`true` stops all traces and metrics.'],
  [
    '`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`',
    'Resource of spans and metrics. They override `service.name` (`user-management-service`) and `service.version`.',
  ],
  [
    '`OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`',
    'Sampler. The default is `parentbased_always_on`: the caller decides if the request has a `traceparent`.',
  ],
  ['`OTEL_PROPAGATORS`', '`none` starts a new trace for each request, whatever its `traceparent`.'],
  [
    '`OTEL_EXPORTER_OTLP_COMPRESSION`, `…_CERTIFICATE`, `…_CLIENT_KEY`, `…_CLIENT_CERTIFICATE`',
    'Requests to the OTLP receiver.',
  ],
  ['`OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE`', 'Temporality of pushed metrics.'],
  ['`OTEL_ATTRIBUTE_*`, `OTEL_SPAN_*`', 'Limits for the attributes of spans.'],
  [
    '`AWS_XRAY_CONTEXT_MISSING`, `AWS_XRAY_DAEMON_ADDRESS`',
    'AWS Lambda with `POWERTOOLS_TRACE_ENABLED` only: the SDK of AWS X-Ray reads them.',
  ],
  ['`NODE_EXTRA_CA_CERTS`', 'File with certificate authorities that Node.js trusts besides its own.'],
];

keepFile(
  'docs/settings.md',
  `<!-- Generated from lib/settings/setting-table.ts and infra/tools/settings-table.ts: npm run generate -->

# Settings

This page is for operators. All settings are environment variables. The service reads them once, at start.

- If a setting is missing or not valid, the process exits with code 1. The message names every such setting and the
  values that it accepts.
- White space at both ends of a value is removed, except of a password. An empty value counts as unset.
- Variables of OpenTelemetry that nothing would use are not checked, for example while it is off.
- An unknown \`SVC_*\` name causes the warning \`unknown_setting\`, so that a typo is visible.
- Times are in seconds. A boolean is \`true\`/\`false\`, \`1\`/\`0\`, \`yes\`/\`no\` or \`on\`/\`off\`, in any case.
- Each \`OTEL_EXPORTER_OTLP_*\` also exists for one signal: \`OTEL_EXPORTER_OTLP_TRACES_*\`, \`OTEL_EXPORTER_OTLP_METRICS_*\`.

${SECTIONS.map(section).join('\n\n')}

## Other variables

Libraries read these variables. No other variable changes what the service does or logs, except the variables of
Node.js. None of them puts a line that is not JSON on standard output in production.

${table(['variable', 'meaning'], OTHER_VARIABLES)}
`,
);

function section([heading]: (typeof SECTIONS)[number]): string {
  const rows = Object.entries(SETTINGS)
    .filter(([name]) => SECTIONS.find(([, names]) => names.test(name))?.[0] === heading)
    .map(([name, schema]) => row(name, schema));
  return `## ${heading}\n\n${table(['setting', 'default', 'accepts', 'meaning'], rows)}`;
}

function row(name: string, schema: z.ZodType): readonly unknown[] {
  const { shownDefault, description } = schema.meta() ?? {};
  const { value, accepts } = unwrapped(schema);
  return [
    `\`${name}\``,
    shownDefault ?? shown(value, schema),
    accepts === acceptsOf(flag) ? 'a boolean' : accepts,
    description,
  ];
}

function shown(value: unknown, schema: z.ZodType): string {
  if (value === undefined) return schema.safeParse(undefined).success ? 'unset' : '**required**';
  if (value === '') return 'empty';
  return Array.isArray(value) && value.length > 1 ? 'all of them' : `\`${value}\``;
}

/** The default around a setting, and what the setting inside accepts. */
function unwrapped(schema: z.ZodType): { value: unknown; accepts: unknown } {
  if (schema instanceof z.ZodDefault)
    return { ...unwrapped(schema.unwrap() as z.ZodType), value: schema.def.defaultValue };
  if (schema instanceof z.ZodOptional) return unwrapped(schema.unwrap() as z.ZodType);
  return { value: undefined, accepts: acceptsOf(schema) };
}

/** What a setting accepts. `describe` makes a copy, which keeps the declaration's own notes. */
function acceptsOf(schema: z.ZodType): unknown {
  return schema.meta()?.accepts;
}
