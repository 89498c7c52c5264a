import { readFileSync } from 'node:fs';
import * as z from 'zod';

/** What is read of a schema in order to make values; the rest is for the validator. */
export type Schema = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly $ref?: string;
};

export type Parameter = {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: string;
};

type Response = {
  readonly headers: Readonly<Record<string, { readonly required?: boolean; readonly schema: Schema }>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
};

export type Operation = {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly bodies: Readonly<Record<string, Schema>>;
  /** By status. */
  readonly responses: Readonly<Record<string, Response>>;
  readonly isPublic: boolean;
};

const document = JSON.parse(readFileSync(new URL('../../infra/openapi.json', import.meta.url), 'utf8'));

/** Every operation of the committed document, with what it refers to put in its place. */
export const operations: readonly Operation[] = Object.entries<Record<string, never>>(document.paths).flatMap(
  ([path, item]) =>
    Object.entries<Record<string, never>>(item).map(([method, operation]) => ({
      operationId: operation.operationId as unknown as string,
      method: method.toUpperCase(),
      path,
      parameters: ((operation.parameters ?? []) as Parameter[]).map(resolved),
      bodies: schemasOf((operation.requestBody as never as { content?: object } | undefined)?.content),
      responses: responsesOf(operation.responses as never),
      isPublic: (operation.security as unknown as unknown[]).length === 0,
    })),
);

export function operationOf(id: string): Operation {
  return operations.find(({ operationId }) => operationId === id) as Operation;
}

/** The methods of each path, with those that need no operation: HEAD where GET is, and OPTIONS. */
export const methodsByPath: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...Map.groupBy(operations, ({ path }) => path)].map(([path, group]) => {
    const methods = group.map(({ method }) => method);
    return [path, new Set([...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'])];
  }),
);

/** The schema itself where this refers to one. */
export function resolved<Value>(value: Value): Value {
  const { $ref } = value as { $ref?: string };
  if ($ref === undefined) return value;
  const [, ...names] = $ref.split('/');
  return names.reduce((at, name) => at[name], document) as Value;
}

const validators = new Map<Schema, z.ZodType>();

export function isValid(schema: Schema, value: unknown): boolean {
  return faultIn(schema, value) === undefined;
}

/** Why a value is none that the schema describes. */
export function faultIn(schema: Schema, value: unknown): string | undefined {
  const validator = validators.get(schema) ?? validatorOf(schema);
  validators.set(schema, validator);
  return validator.safeParse(value).error?.message;
}

function validatorOf(schema: Schema): z.ZodType {
  const whole = JSON.stringify({ ...schema, $defs: document.components.schemas });
  return z.fromJSONSchema(JSON.parse(whole.replaceAll('#/components/schemas/', '#/$defs/')));
}

function schemasOf(content: object = {}): Record<string, Schema> {
  return Object.fromEntries(Object.entries(content).map(([type, { schema }]) => [type, schema]));
}

function responsesOf(responses: Readonly<Record<string, Response>>): Operation['responses'] {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { headers, ...rest }]) => {
      const named = Object.entries(headers).map(([name, header]) => [name.toLowerCase(), resolved(header)]);
      return [status, { ...rest, headers: Object.fromEntries(named) }];
    }),
  );
}
