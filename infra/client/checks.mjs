// Writes the checks of the OpenAPI document that the client runs: one function for each set of parameters and each response.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import standaloneCode from 'ajv/dist/standalone/index.js';

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));
const { paths, components } = readJson('../openapi.json');
const texts = ['description', 'example', 'examples', 'default', 'format'];
const limits = ['enum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum'];

/** A schema without what the check does not need. A received value may come from a later version with other limits. */
function trim(schema, isReceived, isNames = false) {
  if (Array.isArray(schema)) return schema.map((one) => trim(one, isReceived));
  if (typeof schema !== 'object' || schema === null) return schema;
  const { $ref, format } = schema;
  if (typeof $ref === 'string' && !isNames) return { $ref: $ref.split('/').at(-1) };
  const left = isReceived ? [...texts, ...limits, ...(format ? [] : ['pattern'])] : [...texts, 'maxLength'];
  const kept = Object.entries(schema).filter(([name]) => isNames || !left.includes(name));
  return Object.fromEntries(kept.map(([name, one]) => [name, trim(one, isReceived, name === 'properties')]));
}

/** The parameters of a path, a query or the headers. A later version of the service may have other cursors. */
function trimParameters(parameters, place) {
  const known = parameters.filter((parameter) => parameter.in === place);
  const schemaOf = ({ name, schema }) =>
    name === 'cursor' ? { type: 'string', minLength: 1 } : trim(schema, false);
  return {
    type: 'object',
    properties: Object.fromEntries(known.map((parameter) => [parameter.name, schemaOf(parameter)])),
    required: known.filter(({ required }) => required).map(({ name }) => name),
    ...(place !== 'header' && { additionalProperties: false }),
  };
}

const schemas = Object.fromEntries(
  Object.entries(components.schemas).map(([name, schema]) => [name, trim(schema, true)]),
);
const operations = {};
for (const [path, item] of Object.entries(paths)) {
  for (const [method, { parameters = [], responses }] of Object.entries(item)) {
    const name = (end) => `${method}${path}${end}`.replace(/\W+/g, '_');
    const checks = { responses: {} };
    for (const place of ['path', 'query', 'header']) {
      checks[place] = name(`/${place}`);
      schemas[checks[place]] = trimParameters(parameters, place);
    }
    for (const [status, { content = {} }] of Object.entries(responses)) {
      if (status >= '400') continue;
      checks.responses[status] = {};
      for (const [type, { schema }] of Object.entries(content)) {
        checks.responses[status][type] = name(`/${status}`);
        schemas[name(`/${status}`)] = trim(schema, true);
      }
    }
    operations[`${method.toUpperCase()} ${path}`] = checks;
  }
}

// Lengths are checked for 0 only, so that they may be those of UTF-16.
const ajv = new Ajv({
  ...{ strict: false, unicode: false, logger: false },
  schemas: Object.entries(schemas).map(([$id, schema]) => ({ $id, ...schema })),
  code: { source: true, esm: true },
});
const named = Object.keys(schemas).filter((name) => name === 'Problem' || /^[a-z]/.test(name));
const functions = standaloneCode(ajv, Object.fromEntries(named.map((name) => [name, name])));
const table = JSON.stringify(operations).replace(/"((?:get|post|patch|delete)_\w+)"/g, '$1');
const { UserRead, UserUpdate, Problem } = components.schemas;
const members = Object.entries(UserRead.properties);
const parameterOf = (path, name) => paths[path].get.parameters.find((one) => one.name === name).schema;
const constants = {
  VERSION: readJson('package.json').version,
  DEFAULT_LIST_LIMIT: parameterOf('/api/v1/users/', 'limit').default,
  MAX_IDS: parameterOf('/api/v1/users/', 'ids').maxItems,
  MAX_CHANGES: parameterOf('/api/v1/users/changes', 'limit').maximum,
  MAX_WAIT_SECONDS: parameterOf('/api/v1/users/changes', 'wait').maximum,
  USER_FORMATS: Object.fromEntries(members.map(([name, { format = '' }]) => [name, format])),
  // Members of a user that an update ignores, and those that it leaves unchanged if they are null.
  READ_ONLY: members.map(([name]) => name).filter((name) => !(name in UserUpdate.properties)),
  LEFT_BY_NULL: UserRead.required.filter((name) => typeof UserRead.properties[name].type === 'string'),
};
const types = { USER_FORMATS: ': Readonly<Record<string, string>>' };
const toConstant = ([name, value]) => `export const ${name}${types[name] ?? ''} = ${JSON.stringify(value)};`;
const codes = Problem.description.matchAll(/(?<=urn:svc:error:)\w+/g);
writeFileSync(
  'src/checks.ts',
  `// @ts-nocheck: generated from the OpenAPI document
${functions}
export const OPERATIONS: unknown = ${table};
${Object.entries(constants).map(toConstant).join('\n')}
`,
);
appendFileSync(
  'src/schema.ts',
  `/** The part after \`urn:svc:error:\` in the \`type\` of a problem. */
export type ProblemCode = '${[...codes].join("' | '")}';
`,
);
